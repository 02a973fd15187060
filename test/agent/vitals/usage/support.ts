// A sampler of a fake box: fake /proc, fake clock.
import type { Test } from 'tap'
import { createActivityTracker } from '../../../../agent/activity-tracker.ts'
import { createBoxMetrics } from '../../../../agent/vitals/box-metrics.ts'
import { createBoxProcesses } from '../../../../agent/vitals/box-processes.ts'
import { readScope } from '../../../../agent/vitals/scope.ts'
import type { DiskSpaceMeter } from '../../../../agent/vitals/usage/disk-space.ts'
import { createReader } from '../../../../agent/vitals/usage/reading.ts'
import { vitalsSchema } from '../../../../shared/api/boxes.ts'
import { type MetricsSample, metricsSampleSchema } from '../../../../shared/api/metrics.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { createFakeProc } from '../fake-proc.ts'

export const BOX = '7f5b0b5c-3a87-4d8e-9d3b-1c2f6f0a7e11'
/** What the local provider sets at the levels bubblewrap and namespaces. */
export const NAMESPACED = {
  BOXWOOD_CPUS: '2',
  BOXWOOD_MEMORY_BYTES: String(1000 * 1024),
  BOXWOOD_DISK_BYTES: '10000',
  BOXWOOD_NETWORK: 'host',
  BOXWOOD_PRIVATE_PIDS: '1',
}
/** The pid of the agent in the fake process table. */
export const AGENT_PID = 2000

export async function startFakeBox(
  t: Test,
  env: Record<string, string>,
  prepare: (proc: ReturnType<typeof createFakeProc>) => void = () => undefined,
  { home = '/home/box', cgroupRoot = '/nonexistent' } = {},
) {
  const proc = createFakeProc(t)
  prepare(proc)
  let now = 1_800_000_000_000
  const clock = { now: () => now }
  const scope = readScope({ boxId: BOX, env, procRoot: proc.root, cgroupRoot })
  const activity = createActivityTracker(clock)
  const disk = {
    used: null as number | null,
    helperPid: undefined as number | undefined,
    written: [] as unknown[],
  }
  const diskSpace: DiskSpaceMeter = {
    update: (written) => void disk.written.push(written),
    usedBytes: () => disk.used,
    pid: () => disk.helperPid,
    close: async () => undefined,
  }
  const samples: MetricsSample[] = []
  const metrics = await createBoxMetrics({
    ...{ home, activity, log: silentLog },
    read: createReader({
      ...{ scope, home, diskSpace },
      procRoot: proc.root,
      agentPid: AGENT_PID,
      boxProcesses: createBoxProcesses({ procRoot: proc.root, membership: scope.membership }),
      monotonicNow: () => now,
    }),
    countListeners: () => 3,
    append: (sample) => void samples.push(metricsSampleSchema.parse(sample)),
  })
  return {
    proc,
    disk,
    activity,
    vitals: () => vitalsSchema.parse(metrics.vitals()),
    /** Time passes, and the sampler takes a sample. */
    async sample(seconds = 30) {
      now += seconds * 1000
      await metrics.task.run(Math.floor(now / 30_000) * 30_000)
      const sample = samples.at(-1)
      if (sample === undefined) throw new Error('there is no sample')
      return sample
    },
    advance(seconds: number) {
      now += seconds * 1000
    },
  }
}
