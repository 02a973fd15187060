// Measures the latency of `sh -c true` through Boxwood, over ssh and with child_process.spawn alone.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { readCpuSecondsWithChildren } from './support/processes.ts'
import { type SshBaseline, startSsh } from './support/ssh.ts'
import { formatNumber, measureRuns, median, quantile } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 4
const WARM_UP_RUNS = 50
/** Runs per round, one after another. */
const SEQUENTIAL_RUNS = 100
/** Runs per round in each of the parallel loops. */
const CONCURRENT_RUNS = 25
const SETTLE_MS = 300
const CONCURRENCIES = [8, 64]

const runTrueLocally = () =>
  new Promise<void>((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.resume()
    child.stderr.resume()
    child.once('error', reject)
    child.once('exit', () => resolve())
  })

type Candidate = {
  name: string
  run: () => Promise<void>
  /** The processes whose CPU time counts, with the children that they have waited for. */
  pids: number[]
}
type Samples = { ms: number[]; perSecond: number[]; cpuMs: number[] }

export async function benchExec(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table[]> {
  const boxwoodPids = [boxwood.coordinatorPid, boxwood.agentPid]
  const candidates: Candidate[] = [
    { name: '`child_process.spawn` in Node', run: runTrueLocally, pids: [process.pid] },
    {
      name: 'Boxwood: client → coordinator → tunnel → agent',
      run: () => boxwood.exec('true'),
      pids: boxwoodPids,
    },
  ]
  if (ssh)
    candidates.push(
      { name: 'ssh, open connection', run: () => ssh.direct.exec('true'), pids: [] },
      {
        name: 'ssh, open connection through a tuned `ssh -R`',
        run: () => ssh.reverse.exec('true'),
        pids: [],
      },
    )
  const tables = []
  for (const concurrency of [1, ...CONCURRENCIES]) tables.push(await compare(candidates, concurrency))
  return tables
}

async function compare(candidates: readonly Candidate[], concurrency: number): Promise<Table> {
  const results = candidates.map((candidate) => ({
    candidate,
    samples: { ms: [], perSecond: [], cpuMs: [] } as Samples,
  }))
  const runs = concurrency === 1 ? SEQUENTIAL_RUNS : CONCURRENT_RUNS
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let i = 0; i < ROUNDS; i++)
    for (const { candidate, samples } of results) await measureRound(candidate, runs, concurrency, samples)
  const [spawned] = results
  if (!spawned) throw new Error('no candidates to compare')
  const median50 = median(spawned.samples.ms)
  return {
    title: `Exec of \`sh -c true\`, ${concurrency} at once`,
    columns: ['', 'p50 (ms)', 'p99 (ms)', 'per second', 'CPU per exec (ms)', 'p50 ÷ spawn', 'rate ÷ spawn'],
    rows: results.map(({ candidate, samples: { ms, perSecond, cpuMs } }) => [
      candidate.name,
      formatNumber(median(ms)),
      formatNumber(quantile(ms, 0.99)),
      formatNumber(median(perSecond)),
      candidate.pids.length === 0 ? '' : formatNumber(median(cpuMs)),
      formatNumber(median(ms) / median50),
      formatNumber(median(perSecond) / median(spawned.samples.perSecond)),
    ]),
  }
}

async function measureRound(
  { run, pids }: Candidate,
  runs: number,
  concurrency: number,
  { ms, perSecond, cpuMs }: Samples,
): Promise<void> {
  await measureRuns(WARM_UP_RUNS, 1, run)
  const cpuBefore = await readTotalCpuSeconds(pids)
  const startedAt = performance.now()
  ms.push(...(await measureRuns(runs, concurrency, run)))
  perSecond.push((runs * concurrency * 1000) / (performance.now() - startedAt))
  // The history is stored shortly after the responses.
  await sleep(SETTLE_MS)
  cpuMs.push((((await readTotalCpuSeconds(pids)) - cpuBefore) * 1000) / (runs * concurrency))
}

async function readTotalCpuSeconds(pids: readonly number[]): Promise<number> {
  const seconds = await Promise.all(pids.map(readCpuSecondsWithChildren))
  return seconds.reduce((sum, each) => sum + each, 0)
}

if (import.meta.main) {
  const ssh = await startSsh()
  const boxwood = await startBoxwood()
  try {
    for (const table of await benchExec(boxwood, ssh)) console.log(formatMarkdown(table))
  } finally {
    await boxwood.close()
    await ssh?.close()
  }
}
