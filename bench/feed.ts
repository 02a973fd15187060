// Measures the coordinator's memory and CPU usage with many open feeds: idle, and while boxes change.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { LIMITS } from '../shared/limits.ts'
import { type Fleet, receiveMessage, startFleet } from '../test/support/fleet.ts'
import { getPid, readCpuSeconds, readResidentBytes } from './support/processes.ts'
import { formatNumber, quantile, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const BOX_COUNT = 1000
const FEED_COUNT = 100
/** Each box gets another name once in this time. */
const MEASURED_SECONDS = 20
/** The time between the last connection and the measurement. */
const SETTLE_MS = 5000

export async function benchFeed(): Promise<Table> {
  return {
    title: `Coordinator with ${BOX_COUNT} boxes and open feeds, over ${MEASURED_SECONDS} s`,
    columns: [
      '',
      'resident memory (MiB)',
      'CPU (% of one core)',
      'KiB/s per feed',
      'change received, p50 (ms)',
      'p99 (ms)',
      'first items of all feeds (ms)',
    ],
    rows: [...(await measureFeeds(0)), ...(await measureFeeds(FEED_COUNT))],
  }
}

async function measureFeeds(count: number): Promise<string[][]> {
  const { fleet, coordinator, stop } = await startFleet(BOX_COUNT, { execArgv: ['--expose-gc'] })
  const pid = getPid(coordinator)
  const sockets: WebSocket[] = []
  try {
    const credentials = [{ authorization: `Bearer ${fleet.key}` }, { cookie: await signIn(fleet) }]
    const startedAt = performance.now()
    await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const headers = credentials[Math.floor(i / LIMITS.feeds.perCredential)] ?? {}
        const ws = new WebSocket(`${fleet.url.replace('http', 'ws')}/api/v1/feed?live=1`, { headers })
        sockets.push(ws)
        const ready = Promise.withResolvers<void>()
        ws.on('message', (data) => {
          if (String(data).startsWith('{"type":"ready"')) ready.resolve()
        })
        ws.once('close', () => ready.reject(new Error('a feed was closed')))
        await ready.promise
      }),
    )
    const firstItemsMs = performance.now() - startedAt
    await sleep(SETTLE_MS)

    let bytes = 0
    for (const ws of sockets) ws.on('message', (data: Buffer) => (bytes += data.length))
    const measure = async (name: string, run: () => Promise<number[]>) => {
      const [cpuBefore, bytesBefore] = [await readCpuSeconds(pid), bytes]
      const delaysMs = await run()
      const cpuSeconds = (await readCpuSeconds(pid)) - cpuBefore
      coordinator.send('collect')
      await receiveMessage(coordinator)
      const perFeed = count === 0 ? [] : [(bytes - bytesBefore) / 1024 / MEASURED_SECONDS / count]
      const delays = delaysMs.length === 0 ? [] : [quantile(delaysMs, 0.5), quantile(delaysMs, 0.99)]
      const figures = [toMiB(await readResidentBytes(pid)), (cpuSeconds * 100) / MEASURED_SECONDS, ...perFeed]
      return [
        `${count === 0 ? 'no' : count} feeds, ${name}`,
        ...figures.map(formatNumber),
        ...(count === 0 ? [''] : []),
        ...(delays.length === 0 ? ['', ''] : delays.map(formatNumber)),
        count === 0 ? '' : formatNumber(firstItemsMs),
      ]
    }
    return [
      await measure('idle', async () => {
        await sleep(MEASURED_SECONDS * 1000)
        return []
      }),
      await measure(`${BOX_COUNT} boxes changing`, () => renameBoxes(fleet, sockets[0])),
    ]
  } finally {
    for (const ws of sockets) ws.terminate()
    await stop()
  }
}

/** Returns the milliseconds from each request to the arrival of the change on the feed. */
async function renameBoxes({ url, key, boxes }: Fleet, feed: WebSocket | undefined): Promise<number[]> {
  const requestedAt = new Map<string, number>()
  const delaysMs: number[] = []
  feed?.on('message', (data: Buffer) => {
    const now = performance.now()
    const { items = [] } = JSON.parse(data.toString()) as { items?: { hostname: string }[] }
    for (const { hostname } of items) {
      const at = requestedAt.get(hostname)
      if (at !== undefined) delaysMs.push(now - at)
      requestedAt.delete(hostname)
    }
  })
  const startedAt = performance.now()
  for (const [i, { boxId }] of boxes.entries()) {
    const delayMs = startedAt + (i * MEASURED_SECONDS * 1000) / boxes.length - performance.now()
    if (delayMs > 0) await sleep(delayMs)
    const name = `renamed-${i}`
    requestedAt.set(name, performance.now())
    await fetch(`${url}/api/v1/boxes/${boxId}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    })
  }
  return delaysMs
}

/** Returns the cookie of a session: a credential of its own, with a limit of its own. */
async function signIn({ url, dataDir }: Fleet): Promise<string> {
  const secret = await readFile(join(dataDir, 'sign-in.key'), 'utf8')
  const { headers } = await fetch(`${url}/api/v1/sign-in/owner`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ secret }),
  })
  return headers.get('set-cookie')?.split(';', 1)[0] ?? ''
}

if (import.meta.main) console.log(formatMarkdown(await benchFeed()))
