// Compares what people wait for with ssh, docker, cp, curl and relays, in about five minutes. All candidates take turns.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Boxwood as Client } from '../client/exports.ts'
import { get, startRoutes } from './shares.ts'
import { startBoxwood } from './support/boxwood.ts'
import { IMAGE, startDocker } from './support/docker.ts'
import { runProgram, terminate } from './support/processes.ts'
import { describeDisturbance, measureReference, type Reference } from './support/reference.ts'
import { startSsh } from './support/ssh.ts'
import { formatNumber, measureDuration, measureRuns, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 6
const EXECS = 20
const REQUESTS = 100
const TREE_MIB = 100
const FILE_MIB = 256
const DOWNLOAD_BYTES = 256 * 1024 ** 2

/** Each function resolves to the duration in milliseconds. */
type Comparison = {
  what: string
  measure(): Promise<number>
  rival: string
  /** null: it is not installed. */
  measureRival: (() => Promise<number>) | null
}

export async function benchQuick(): Promise<Table[]> {
  await using cleanup = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-quick-'))
  cleanup.defer(() => rm(dir, { recursive: true, force: true }))
  const comparisons = await prepare(dir, cleanup)

  const references: Reference[] = []
  const samples = comparisons.map(() => ({ own: [] as number[], rival: [] as number[] }))
  for (let round = 0; round <= ROUNDS; round += 1) {
    const reference = await measureReference()
    if (round > 0) references.push(reference)
    for (const [index, { measure, measureRival }] of comparisons.entries()) {
      const [own, rival] = [await measure(), await measureRival?.()]
      // The first round loads the code, and accesses the memory for the first time.
      if (round === 0) continue
      samples[index]?.own.push(own)
      if (rival !== undefined) samples[index]?.rival.push(rival)
    }
  }
  const node = median(references.map(({ node }) => node))
  const spawn = median(references.map(({ spawn }) => spawn))
  const pageTouch = median(references.map(({ pageTouch }) => pageTouch))
  for (const line of describeDisturbance({ node, spawn, pageTouch })) console.error(line)
  return [
    {
      title: 'What people wait for',
      columns: ['', 'Boxwood (ms)', '÷ node', 'compared with', 'it takes (ms)', 'Boxwood ÷ it'],
      rows: comparisons.map(({ what, rival }, index) => {
        const { own = [], rival: others = [] } = samples[index] ?? {}
        // Of each round, because the load of the machine differs between the rounds.
        const ratio = median(own.map((ms, round) => ms / (others[round] ?? Number.NaN)))
        return [
          what,
          formatNumber(median(own)),
          formatNumber(median(own) / node),
          rival,
          ...(others.length > 0 ? [formatNumber(median(others)), formatNumber(ratio)] : ['–', '–']),
        ]
      }),
    },
    {
      title: 'This machine',
      columns: ['`node -e ""` (ms)', 'a program that does nothing (ms)', 'first access to a page (µs)'],
      rows: [[node, spawn, pageTouch].map(formatNumber)],
    },
  ]
}

async function prepare(dir: string, cleanup: AsyncDisposableStack): Promise<Comparison[]> {
  const ssh = await startSsh()
  if (ssh !== null) cleanup.defer(ssh.close)
  const boxwood = await startBoxwood()
  cleanup.defer(boxwood.close)
  const { boxes } = new Client({ url: boxwood.url, apiKey: boxwood.key })
  const docker = await startDocker()
  if (typeof docker === 'string') console.error(`Docker is not measured: ${docker}.`)
  else cleanup.defer(docker.close)
  const shares = await startRoutes()
  cleanup.defer(shares.close)
  const [relays, link] = shares.routes

  const [source, target, raw] = [join(dir, 'source'), join(dir, 'target'), join(dir, 'raw')]
  await runProgram('sh', ['-c', `head -c ${FILE_MIB}M /dev/urandom > ${source}`])
  const receiver = fork(join(import.meta.dirname, 'support/receive-upload.ts'), [raw])
  cleanup.defer(() => terminate(receiver))
  const [rawUrl] = (await once(receiver, 'message')) as [string]
  const box = await boxes.get(boxwood.box.hostname)
  const route = `${boxwood.url}/v1/box/${box.id}`
  const curl = (...args: string[]) =>
    runProgram('curl', ['-sf', '-H', `Authorization: Bearer ${boxwood.key}`, '-o', target, ...args])

  const tree = join(dir, 'tree')
  // 400 files of 256 KiB.
  const makeTree = `mkdir tree && cd tree && for i in $(seq ${TREE_MIB * 4}); do head -c 256k /dev/urandom > $i; done`
  await runProgram('sh', ['-c', makeTree], { cwd: dir })
  const full = await boxes.create()
  await full.exec(makeTree)

  const times = async (count: number, run: () => Promise<unknown>) =>
    median(await measureRuns(count, 1, async () => void (await run())))
  return [
    {
      what: 'a command: `true`',
      measure: () => times(EXECS, () => boxwood.exec('true')),
      rival: 'ssh through `ssh -R`, with an open connection',
      measureRival: ssh && (() => times(EXECS, () => ssh.reverse.exec('true'))),
    },
    {
      what: 'a new box, until its first command has ended',
      measure: () => measureNewBox(() => boxes.create()),
      rival: '`docker run` of `true`',
      measureRival:
        typeof docker === 'string'
          ? null
          : () => measureDuration(() => docker.run('run', '--rm', '--network', 'none', IMAGE, '/bin/true')),
    },
    {
      what: `a fork of a box with ${TREE_MIB} MiB, until its first command has ended`,
      measure: () => measureNewBox(() => full.fork()),
      rival: '`cp -a` of the files',
      async measureRival() {
        const copy = join(dir, 'copy')
        const ms = await measureDuration(() => runProgram('cp', ['-a', tree, copy]))
        await rm(copy, { recursive: true })
        return ms
      },
    },
    {
      what: `an upload of ${FILE_MIB} MiB by curl`,
      measure: () => measureDuration(() => curl('-T', source, `${route}/upload?path=quick.bin`)),
      rival: 'curl to a server that writes and syncs a file',
      async measureRival() {
        await rm(raw, { force: true })
        return measureDuration(() => curl('-T', source, rawUrl))
      },
    },
    {
      what: `a download of ${FILE_MIB} MiB by curl`,
      measure: () => measureDuration(() => curl(`${route}/download?path=quick.bin`)),
      rival: '`cp` of the file',
      measureRival: () => measureDuration(() => runProgram('cp', [source, target])),
    },
    {
      what: 'a request through a link to a port',
      measure: () => times(REQUESTS, () => get(link, '/bytes/1024')),
      rival: 'two relays in a row',
      measureRival: () => times(REQUESTS, () => get(relays, '/bytes/1024')),
    },
    {
      what: `a download of ${FILE_MIB} MiB through a link to a port`,
      measure: () => measureDuration(() => get(link, `/bytes/${DOWNLOAD_BYTES}`)),
      rival: 'two relays in a row',
      measureRival: () => measureDuration(() => get(relays, `/bytes/${DOWNLOAD_BYTES}`)),
    },
  ]
}

async function measureNewBox(
  create: () => Promise<{ exec(command: string): Promise<unknown>; delete(): Promise<void> }>,
): Promise<number> {
  const startedAt = performance.now()
  const box = await create()
  await box.exec('true')
  const ms = performance.now() - startedAt
  await box.delete()
  return ms
}

if (import.meta.main) for (const table of await benchQuick()) console.log(formatMarkdown(table))
