// Samples the box's usage every 30 seconds: a report for the coordinator, and the vitals (spec §2.2) of heartbeats.
import type { Logger } from 'pino'
import type { Activity } from '../../shared/api/activity.ts'
import type { Vitals } from '../../shared/api/boxes.ts'
import type { MetricsSample } from '../../shared/api/metrics.ts'
import { DEFAULT_IDLE_CPU_PERCENT } from '../../shared/limits.ts'
import { SAMPLE_SECONDS } from '../../shared/report-limits.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import { agentVersion } from '../version.ts'
import type { MachineSize } from './machine-report.ts'
import type { SamplerTask } from './sampler.ts'
import type { Reading } from './usage/reading.ts'
import { computeUsage, toPercent, type Usage } from './usage/usage.ts'

export type BoxMetricsDeps = {
  home: string
  log: Logger
  read(): Promise<Reading>
  activity: ActivityTracker
  /** The box is active while its processes use at least this much of one CPU, in percent. */
  idleCpuPercent?: number
  /** null: not known yet. */
  countListeners(): number | null
  append(sample: MetricsSample): void
}

export type BoxMetrics = {
  task: SamplerTask
  /** Returns the last sample, with the current idle time and number of listening ports. */
  vitals(): Vitals
  /** Considers the CPU usage since the last sample too. */
  readActivity(): Promise<Activity>
  /** Returns the size according to the last sample. */
  machineSize(): MachineSize
}

/** Takes the first reading. A sample describes the time since the previous reading. */
export async function createBoxMetrics(deps: BoxMetricsDeps): Promise<BoxMetrics> {
  const { home, log, read, activity, countListeners, append } = deps
  const { idleCpuPercent = DEFAULT_IDLE_CPU_PERCENT } = deps
  let reading: Reading | undefined
  let usage: Usage | undefined

  async function measure(): Promise<Usage> {
    const now = await read()
    usage = computeUsage(now, reading, countListeners())
    reading = now
    return usage
  }
  function touchIfBusy(otherCpus: number | null): void {
    if (otherCpus !== null && otherCpus >= idleCpuPercent / 100) activity.touch()
  }

  // May fail while the box starts: its processes and mounts still change.
  await measure().catch((err: unknown) => log.warn({ err }, 'failed to measure the box; will retry'))

  return {
    task: {
      name: 'metrics',
      everySeconds: SAMPLE_SECONDS,
      async run(at) {
        const { otherCpus, ...sample } = await measure()
        touchIfBusy(otherCpus)
        append({ type: 'metrics.sample', start: at / 1000 - SAMPLE_SECONDS, ...sample })
      },
    },
    async readActivity() {
      const { otherCpus } = computeUsage(await read(), reading, null)
      touchIfBusy(otherCpus)
      return { idleForSec: activity.idleSeconds() }
    },
    vitals: () => ({
      ...toPercentages(usage, home),
      idle_for_sec: activity.idleSeconds(),
      listeners_count: countListeners() ?? 0,
      agent_version: agentVersion,
    }),
    machineSize: () => ({
      cpuCount: usage?.values.cpu_count ?? null,
      memoryBytes: usage?.values.mem_total_bytes ?? null,
      diskBytes: findDisk(usage, home)?.total_bytes ?? null,
    }),
  }
}

/** The file system with the home directory. */
function findDisk(usage: Usage | undefined, home: string) {
  const isParent = (mount: string) => `${home}/`.startsWith(mount.endsWith('/') ? mount : `${mount}/`)
  return (usage?.fs ?? [])
    .filter(({ mount }) => isParent(mount))
    .sort((a, b) => b.mount.length - a.mount.length)[0]
}

function toPercentages(usage: Usage | undefined, home: string) {
  const disk = findDisk(usage, home)
  return {
    cpu_pct: usage?.values.cpu_pct ?? null,
    mem_pct: percentOf(usage?.values.mem_used_bytes, usage?.values.mem_total_bytes),
    disk_pct: percentOf(disk?.used_bytes, disk?.total_bytes),
  }
}

const percentOf = (used: number | null | undefined, total: number | null | undefined): number | null =>
  used == null || !total ? null : toPercent(used / total)
