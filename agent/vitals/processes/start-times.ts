// When processes started, by the clock of the coordinator.
import type { Clock } from '../../../shared/clock.ts'
import { TICK_MS } from '../../process-table.ts'

/** A smaller drift of the clock does not change the start times of all processes. */
const MAX_DRIFT_MS = 1000

export type StartTimes = {
  /** Reads the clock. The result converts ticks since boot to milliseconds since the epoch. */
  read(): (startTicks: number) => number
}

export function createStartTimes(clock: Clock, uptimeSeconds: () => number): StartTimes {
  let bootAt: number | undefined
  return {
    read() {
      const latest = clock.now() - uptimeSeconds() * 1000
      if (bootAt === undefined || Math.abs(latest - bootAt) > MAX_DRIFT_MS) bootAt = latest
      const base = bootAt
      return (startTicks) => Math.max(0, Math.round(base + startTicks * TICK_MS))
    },
  }
}
