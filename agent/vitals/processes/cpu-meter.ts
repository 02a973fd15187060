// CPU usage of each process between two calls.
import { TICK_MS } from '../../process-table.ts'
import type { BoxProcess } from '../box-processes.ts'

/** More than any machine has: a counter that the kernel reports wrongly. */
const MAX_PERCENT = 1e6

export type CpuMeterOptions = {
  /** Milliseconds of a clock that is never set. */
  monotonicNow: () => number
  /** Since the boot. */
  uptimeSeconds: () => number
}

export type CpuMeter = {
  /** Pid → percent of one CPU since the previous call; in the first call, since the start of the process. */
  measure(processes: readonly BoxProcess[]): Map<number, number>
}

export function createCpuMeter({ monotonicNow, uptimeSeconds }: CpuMeterOptions): CpuMeter {
  let previous: { at: number; processes: ReadonlyMap<number, BoxProcess> } | undefined

  return {
    measure(processes) {
      const now = {
        at: monotonicNow(),
        processes: new Map(processes.map((process) => [process.pid, process])),
      }
      const uptimeMs = uptimeSeconds() * 1000
      const measure = (process: BoxProcess): number => {
        const before = previous?.processes.get(process.pid)
        // The kernel reuses pids.
        const ticksBefore = before?.startTime === process.startTime ? before.cpuTicks : 0
        const elapsed = previous === undefined ? uptimeMs - process.startTime * TICK_MS : now.at - previous.at
        const percent = ((process.cpuTicks - ticksBefore) * TICK_MS * 100) / Math.max(TICK_MS, elapsed)
        return Math.min(MAX_PERCENT, Math.max(0, percent))
      }
      const usage = new Map(processes.map((process) => [process.pid, measure(process)]))
      previous = now
      return usage
    },
  }
}
