// The clock of the box, corrected by the time in the coordinator's acknowledgements of reports.
import type { Clock } from '../../shared/clock.ts'

export type CoordinatorClock = Clock & {
  /** @param coordinatorNow milliseconds since the epoch, from an acknowledgement that has just arrived */
  observe(coordinatorNow: number): void
}

/** Smaller differences are delays of the network. */
const MIN_OFFSET_MS = 2000

/**
 * A new offset applies when two consecutive acknowledgements agree on it: one of them may have been delayed.
 * Before the first acknowledgement the clock is that of the box.
 */
export function createCoordinatorClock(clock: Clock): CoordinatorClock {
  let offset = 0
  let previous: number | undefined
  return {
    now: () => clock.now() + offset,
    observe(coordinatorNow) {
      const measured = coordinatorNow - clock.now()
      const isConfirmed = previous !== undefined && Math.abs(measured - previous) < MIN_OFFSET_MS
      previous = measured
      // An offset that is still right is kept, so that the delays of the network do not move the clock.
      if (!isConfirmed || Math.abs(measured - offset) < MIN_OFFSET_MS) return
      offset = Math.abs(measured) < MIN_OFFSET_MS ? 0 : measured
    },
  }
}
