// A killed coordinator: after the restart, each missed sample and snapshot of a running box is stored once.
import type { Test } from 'tap'
import { SAMPLE_SECONDS } from '../../shared/report-limits.ts'
import { startBoxLoad } from '../support/box-load.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import {
  createMeasurements,
  nextMultiple,
  SAMPLE_MS,
  SNAPSHOT_MS,
  sleepUntil,
} from '../support/measurements.ts'

export async function checkMissedMetrics(t: Test): Promise<void> {
  const { sendJson, exec, waitForFirstBox, start, kill } = await startCoordinatorProcess(t)
  const { id, hostname } = await waitForFirstBox()
  const { readMetrics, waitForSample, waitForSnapshot } = createMeasurements(id, (path) =>
    sendJson('GET', `/api/v1${path}`),
  )
  const load = { name: 'load', cpus: 0.05, memoryBytes: 2 ** 20, writtenBytes: 0, loopbackBytes: 0 }
  const { state, readCpus } = await startBoxLoad((command, options) => exec(hostname, command, options), {
    ...load,
    download: null,
  })
  const beforeKill = nextMultiple(SAMPLE_MS)
  await waitForSample(beforeKill)

  await kill('SIGKILL')
  const missedSnapshot = nextMultiple(SNAPSHOT_MS)
  await sleepUntil(missedSnapshot + 2000)
  const restartedAt = Date.now()
  await start()

  const missedSample = await waitForSample(missedSnapshot)
  const cpu = missedSample.series.cpu_pct.avg[0] ?? Number.NaN
  // Of two CPUs. The agent uses the CPU too.
  const used = 50 * (await readCpus(missedSnapshot - SAMPLE_MS, missedSnapshot))
  t.ok(cpu > used - 0.5 && cpu < used + 2.5, `the load of ${used} % is in the missed sample: ${cpu} %`)
  const { at, procs, ports } = await waitForSnapshot(missedSnapshot)
  t.ok(Date.parse(at) < restartedAt, `the snapshot is of ${at}, before the restart`)
  t.match(
    procs.find(({ pid }) => pid === state.pid),
    { name: state.programName },
  )
  t.match(ports, [{ port: state.port, pid: state.pid }])

  const end = nextMultiple(SAMPLE_MS)
  await waitForSample(end)
  const { buckets, series } = await readMetrics(beforeKill - SAMPLE_MS, end)
  const first = (beforeKill - SAMPLE_MS) / 1000
  const count = (end - beforeKill) / SAMPLE_MS + 1
  t.same(
    buckets,
    Array.from({ length: count }, (_, i) => first + i * SAMPLE_SECONDS),
    'each bucket once',
  )
  t.notOk(series.process_count.avg.includes(null), 'no sample is missing')
  t.ok(count >= 3, `${count} samples`)
}
