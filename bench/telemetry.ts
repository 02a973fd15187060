// Measures what metrics and traces cost: the rate of `exec true`, and the coordinator's CPU time and memory.
// `node bench/telemetry.ts` runs only this benchmark.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { readCpuSeconds, readResidentBytes } from './support/processes.ts'
import { formatNumber, measureDuration, measureRuns, median, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 7
const RUNS = 100
const CONCURRENCY = 8

type Candidate = { name: string; boxwood: Boxwood; perSecond: number[]; cpuMs: number[] }

/** Accepts and discards spans. */
async function startReceiver() {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export async function benchTelemetry(): Promise<Table> {
  await using cleanup = new AsyncDisposableStack()
  const receiver = await startReceiver()
  cleanup.defer(() => receiver.close())
  const metrics = { BOXWOOD_METRICS_LISTEN: '127.0.0.1:0' }
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }
  const candidates: Candidate[] = []
  for (const [name, env] of [
    ['off', {}],
    ['metrics', metrics],
    ['metrics and traces of all requests', { ...metrics, ...traces }],
    [
      'metrics and traces of 1 % of the requests',
      { ...metrics, ...traces, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
    ],
  ] as const) {
    const boxwood = await startBoxwood(env)
    cleanup.defer(boxwood.close)
    candidates.push({ name, boxwood, perSecond: [], cpuMs: [] })
    await measureRuns(RUNS, CONCURRENCY, () => boxwood.exec('true'))
  }
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let i = 0; i < ROUNDS; i++)
    for (const { boxwood, perSecond, cpuMs } of candidates) {
      const cpuBefore = await readCpuSeconds(boxwood.coordinatorPid)
      const ms = await measureDuration(() => measureRuns(RUNS, CONCURRENCY, () => boxwood.exec('true')))
      const cpuSeconds = (await readCpuSeconds(boxwood.coordinatorPid)) - cpuBefore
      perSecond.push((RUNS * CONCURRENCY * 1000) / ms)
      cpuMs.push((cpuSeconds * 1000) / (RUNS * CONCURRENCY))
    }
  const [off] = candidates
  if (!off) throw new Error('no candidates to compare')
  const rows = candidates.map(async ({ name, boxwood, perSecond, cpuMs }) => [
    name,
    formatNumber(median(perSecond)),
    formatNumber(median(perSecond) / median(off.perSecond)),
    formatNumber(median(cpuMs)),
    formatNumber(toMiB(await readResidentBytes(boxwood.coordinatorPid))),
  ])
  return {
    title: 'Metrics and traces',
    columns: ['', 'execs per second', '÷ off', 'CPU of the coordinator per exec (ms)', 'coordinator (MiB)'],
    rows: await Promise.all(rows),
  }
}

if (import.meta.main) console.log(formatMarkdown(await benchTelemetry()))
