// Measures GET routes of a coordinator with few and with many boxes and commands. `node bench/growth.ts` runs only this
// benchmark.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { startCoordinator } from '../coordinator/server/app.ts'
import { loadConfig } from '../coordinator/server/config.ts'
import { FakeInfrastructure } from '../test/support/fake-infrastructure.ts'
import { fillBoxes } from '../test/support/fill-boxes.ts'
import { formatNumber, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const SMALL = { boxes: 20, commands: 100 }
const LARGE = { boxes: 2000, commands: 100_000 }
const WARM_UP_RUNS = 10
const RUNS = 40

const ROUTES = [
  '/me',
  '/me?box={id}',
  '/boxes',
  '/boxes?live=1',
  '/boxes?limit=20',
  '/team/status',
  '/agents',
  '/boxes/{id}',
  '/boxes/{id}/commands',
  '/boxes/{id}/commands?mode=detached',
  '/boxes/{id}/commands?status=timed_out',
  '/boxes/{id}/commands?mode=detached&status=exited',
]

/** All values are medians. */
type Result = {
  /** Milliseconds. */
  duration: number
  /** The longest turn of the event loop, in which no other request is served, in milliseconds. */
  longestTurn: number
  bytes: number
}

/** Calls `run` and returns the longest turn of the event loop meanwhile, in milliseconds. */
async function measureLongestTurn(run: () => Promise<unknown>): Promise<number> {
  let [longest, lastTurn, isRunning] = [0, performance.now(), true]
  const onTurn = () => {
    const now = performance.now()
    longest = Math.max(longest, now - lastTurn)
    lastTurn = now
    if (isRunning) setImmediate(onTurn)
  }
  setImmediate(onTurn)
  await run()
  isRunning = false
  return longest
}

async function measureCoordinator(size: { boxes: number; commands: number }): Promise<Result[]> {
  await using cleanup = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  const { provider, tunnels } = new FakeInfrastructure()
  const config = loadConfig({
    BOXWOOD_DATA: dataDir,
    BOXWOOD_LISTEN: '127.0.0.1:0',
    BOXWOOD_LOG: 'silent',
  })
  const coordinator = await startCoordinator(config, { provider, tunnels })
  cleanup.defer(() => coordinator.close())
  const { context, owner, url } = coordinator
  const [box] = owner === null ? [] : await context.boxes.list(owner)
  if (box === undefined) throw new Error('the coordinator has no box')
  await fillBoxes(context.db, { boxId: box.id, ...size })
  const key = (await readFile(join(dataDir, 'owner.key'), 'utf8')).trim()
  const agent = new Agent({ keepAlive: true })
  cleanup.defer(() => agent.destroy())

  /** Returns the bytes of the response body. */
  async function request(path: string): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    get(`${url}/api/v1${path}`, { agent, headers: { authorization: `Bearer ${key}` } }, resolve).on(
      'error',
      reject,
    )
    const response = await promise
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    await finished(response)
    if (response.statusCode !== 200) throw new Error(`GET ${path} responded with ${response.statusCode}`)
    return bytes
  }

  const results: Result[] = []
  for (const route of ROUTES) {
    const path = route.replace('{id}', box.id)
    for (let i = 0; i < WARM_UP_RUNS; i++) await request(path)
    const [durations, turns]: [number[], number[]] = [[], []]
    let bytes = 0
    for (let i = 0; i < RUNS; i++) {
      const startedAt = performance.now()
      bytes = await request(path)
      durations.push(performance.now() - startedAt)
      turns.push(await measureLongestTurn(() => request(path)))
    }
    results.push({ duration: median(durations), longestTurn: median(turns), bytes })
  }
  return results
}

export async function benchGrowth(): Promise<Table> {
  const small = await measureCoordinator(SMALL)
  const large = await measureCoordinator(LARGE)
  const format = (results: readonly Result[], i: number, field: keyof Result) =>
    formatNumber(results[i]?.[field] ?? Number.NaN)
  return {
    title: `GET routes with ${SMALL.boxes} and with ${LARGE.boxes} boxes, and ${LARGE.commands} commands of one box`,
    columns: [
      'GET /api/v1…',
      `p50 (ms), ${SMALL.boxes}`,
      `p50 (ms), ${LARGE.boxes}`,
      `longest turn of the event loop (ms), ${SMALL.boxes}`,
      `longest turn of the event loop (ms), ${LARGE.boxes}`,
      `bytes, ${LARGE.boxes}`,
    ],
    rows: ROUTES.map((route, i) => [
      `\`${route}\``,
      format(small, i, 'duration'),
      format(large, i, 'duration'),
      format(small, i, 'longestTurn'),
      format(large, i, 'longestTurn'),
      String(large[i]?.bytes ?? ''),
    ]),
  }
}

if (import.meta.main) console.log(formatMarkdown(await benchGrowth()))
