// Measures the latency of `sh -c true` through Boxwood, over ssh and with child_process.spawn alone.
import { spawn } from 'node:child_process'
import type { Boxwood } from './support/boxwood.ts'
import type { SshBaseline } from './support/ssh.ts'
import { formatNumber, measureRuns, median, quantile } from './support/stats.ts'
import type { Table } from './support/table.ts'

const ROUNDS = 4
const WARM_UP_RUNS = 10
/** Runs per round, one after another. */
const SEQUENTIAL_RUNS = 100
/** Runs per round in each of CONCURRENCY parallel loops. */
const CONCURRENT_RUNS = 25
const CONCURRENCY = 8

const runTrueLocally = () =>
  new Promise<void>((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.resume()
    child.stderr.resume()
    child.once('error', reject)
    child.once('exit', () => resolve())
  })

type Candidate = { name: string; run: () => Promise<void> }

export async function benchExec(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table> {
  const candidates: Candidate[] = [
    { name: 'Boxwood: client → coordinator → tunnel → agent', run: () => boxwood.exec('true') },
    { name: '`child_process.spawn` in Node', run: runTrueLocally },
  ]
  if (ssh)
    candidates.push(
      { name: 'ssh, open connection', run: () => ssh.direct.exec('true') },
      { name: 'ssh, open connection through a tuned `ssh -R`', run: () => ssh.reverse.exec('true') },
    )
  const results = candidates.map(({ name, run }) => ({
    name,
    run,
    sequentialMs: [] as number[],
    concurrentMs: [] as number[],
  }))
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let i = 0; i < ROUNDS; i++)
    for (const { run, sequentialMs, concurrentMs } of results) {
      await measureRuns(WARM_UP_RUNS, 1, run)
      sequentialMs.push(...(await measureRuns(SEQUENTIAL_RUNS, 1, run)))
      concurrentMs.push(...(await measureRuns(CONCURRENT_RUNS, CONCURRENCY, run)))
    }
  const [boxwoodResult] = results
  if (!boxwoodResult) throw new Error('no candidates to compare')
  return {
    title: 'Exec of `sh -c true`',
    columns: [
      '',
      'p50 (ms), sequential',
      'p99 (ms), sequential',
      `p50 (ms), ${CONCURRENCY} concurrent`,
      'p50 ÷ Boxwood, sequential',
      `p50 ÷ Boxwood, ${CONCURRENCY} concurrent`,
    ],
    rows: results.map(({ name, sequentialMs, concurrentMs }) => [
      name,
      formatNumber(median(sequentialMs)),
      formatNumber(quantile(sequentialMs, 0.99)),
      formatNumber(median(concurrentMs)),
      formatNumber(median(sequentialMs) / median(boxwoodResult.sequentialMs)),
      formatNumber(median(concurrentMs) / median(boxwoodResult.concurrentMs)),
    ]),
  }
}
