// Samples that the agent takes while the coordinator is away arrive when it returns, also after the agent restarted.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createActivityTracker } from '../../agent/activity-tracker.ts'
import { createCoordinatorClock } from '../../agent/reports/coordinator-clock.ts'
import { reportRoutes } from '../../agent/reports/routes.ts'
import { openSpool, type Spool } from '../../agent/reports/spool.ts'
import { openState } from '../../agent/state.ts'
import { createBoxMetrics } from '../../agent/vitals/box-metrics.ts'
import { createListeners } from '../../agent/vitals/listeners.ts'
import { createSampler } from '../../agent/vitals/sampler.ts'
import type { Reading } from '../../agent/vitals/usage/reading.ts'
import type { MetricsSample } from '../../shared/api/metrics.ts'
import { systemClock } from '../../shared/clock.ts'
import { createFakeTime } from '../agent/vitals/fake-sampler-time.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { silentLog, startTestAgent, startTunnelServer, type TunnelServer } from '../support/tunnel.ts'
import { waitUntil } from '../support/wait-until.ts'

const HOUR_MS = 3_600_000

/** The sampler of an agent, on a fake clock. */
async function startSampling(t: Test, spool: Spool, time: ReturnType<typeof createFakeTime>) {
  let cpuSeconds = 0
  const read = async (): Promise<Reading> => {
    cpuSeconds += 3
    return {
      ...{ monotonicMs: time.monotonicNow(), cpuSeconds, cpus: 1, otherCpuSeconds: 0, processes: [] },
      ...{ memory: { usedBytes: 1, totalBytes: 2 }, load: null, disk: null, fileSystems: [], interfaces: [] },
    }
  }
  const clock = createCoordinatorClock(time.clock)
  const metrics = await createBoxMetrics({
    ...{ home: '/home/box', log: silentLog, read, activity: createActivityTracker(time.clock) },
    countListeners: () => 0,
    append: (sample) => void spool.appendOptional(sample),
  })
  const sampler = createSampler({ ...time, clock, log: silentLog })
  t.after(() => sampler.close())
  sampler.add(metrics.task)
  return { sampler, clock, vitals: metrics.vitals }
}

async function connectAgent(t: Test, box: Box, url: string, spool: Spool, agent: Sampling) {
  const testAgent = await startTestAgent(box, url, (router) =>
    reportRoutes(router, {
      ...{ spool, clock: systemClock, readVitals: agent.vitals },
      listeners: createListeners({ processes: { list: async () => [] }, ownNetwork: false }),
      onCoordinatorTime: agent.clock.observe,
      flushRecorders: async () => undefined,
    }),
  )
  t.after(() => testAgent.close())
}
type Box = ReturnType<TunnelServer['addBox']>
type Sampling = Awaited<ReturnType<typeof startSampling>>

t.test('delivers the samples of hours without a coordinator, and of an earlier agent', async (t) => {
  const dir = createTempDir(t, 'away')
  const openReports = async () => {
    const stateFile = await openState(dir, silentLog)
    return openSpool({ dir: join(dir, 'reports'), stateFile, log: silentLog })
  }
  const started = Date.parse('2026-01-31T03:14:07Z')
  const time = createFakeTime(started)
  const firstSpool = await openReports()
  const first = await startSampling(t, firstSpool, time)
  await time.advance(HOUR_MS)
  await first.sampler.close()
  await firstSpool.close()
  // The box is suspended for half an hour.
  time.jump(HOUR_MS / 2)
  const spool = await openReports()
  t.after(() => spool.close())
  const second = await startSampling(t, spool, time)
  await time.advance(HOUR_MS)

  const received: MetricsSample[] = []
  const coordinator = await startTunnelServer({
    clock: { now: () => time.clock.now() },
    ingest: {
      apply: async (_boxId, _epoch, reports) => {
        for (const { report } of reports) if (report.type === 'metrics.sample') received.push(report)
      },
      heartbeat: () => undefined,
      listeners: () => undefined,
    },
  })
  t.after(() => coordinator.close())
  await connectAgent(t, coordinator.addBox(), coordinator.url, spool, second)
  await waitUntil('all samples are acknowledged', () => received.length >= 240 && spool.pendingBytes() === 0)

  const first30 = Math.floor(started / 30_000) * 30
  const later30 = first30 + 90 * 60
  const hour = Array.from({ length: 120 }, (_, i) => 30 * i)
  t.same(
    received.map(({ start }) => start),
    [...hour.map((seconds) => first30 + seconds), ...hour.map((seconds) => later30 + seconds)],
    'each once, in order, with a gap for the time without an agent',
  )
  // The first interval is shorter: 23 s of 30 s.
  t.same(
    received.slice(0, 3).map(({ values }) => values.cpu_pct),
    [13, 10, 10],
  )
})

t.test('the next samples have the time of the coordinator when the clock of the box is wrong', async (t) => {
  const time = createFakeTime(Date.parse('2026-01-31T03:14:07Z'))
  const dir = createTempDir(t, 'clock')
  const stateFile = await openState(dir, silentLog)
  const spool = await openSpool({ dir: join(dir, 'reports'), stateFile, log: silentLog })
  t.after(() => spool.close())
  const sampling = await startSampling(t, spool, time)
  const received: number[] = []
  const coordinator = await startTunnelServer({
    clock: { now: () => time.clock.now() + HOUR_MS },
    ingest: {
      apply: async (_boxId, _epoch, reports) => {
        for (const { report } of reports)
          if (report.type === 'metrics.sample') received.push(report.start * 1000)
      },
      heartbeat: () => undefined,
      listeners: () => undefined,
    },
  })
  t.after(() => coordinator.close())
  await connectAgent(t, coordinator.addBox(), coordinator.url, spool, sampling)
  for (const count of [1, 2]) {
    await time.advance(30_000)
    await waitUntil('a sample is acknowledged', () => received.length === count && spool.pendingBytes() === 0)
  }
  t.equal(sampling.clock.now(), time.clock.now() + HOUR_MS)
  await time.advance(60_000)
  await waitUntil('samples with the right time arrive', () =>
    received.some((start) => start > time.clock.now()),
  )
  t.same(
    received.map((start) => new Date(start).toISOString().slice(11, 19)),
    ['03:14:00', '03:14:30', '04:15:00', '04:15:30'],
  )
})
