// How often one box may connect: an agent that comes and goes in a tight loop must not take the others' time.
import type { Clock } from '../../shared/clock.ts'

export type AttemptLimit = {
  /** Counts an attempt of the box. 0 when it may go on, else the milliseconds until it may try again. */
  attempt(boxId: string): number
}

/** A bucket of `burst` attempts that refills evenly over `refillMs`. Only for boxes that have authenticated. */
export function createAttemptLimit(clock: Clock, { burst = 60, refillMs = 60_000 } = {}): AttemptLimit {
  const buckets = new Map<string, { left: number; at: number }>()
  const perAttemptMs = refillMs / burst
  return {
    attempt(boxId) {
      const now = clock.now()
      const bucket = buckets.get(boxId) ?? { left: burst, at: now }
      const left = Math.min(burst, bucket.left + Math.max(0, now - bucket.at) / perAttemptMs)
      const allowed = left >= 1
      // Deleted and set again, so that the map's first entries are the ones untouched for longest.
      buckets.delete(boxId)
      buckets.set(boxId, { left: allowed ? left - 1 : left, at: now })
      for (const [id, { at }] of buckets) {
        if (now - at < refillMs) break
        buckets.delete(id)
      }
      return allowed ? 0 : Math.ceil((1 - left) * perAttemptMs)
    },
  }
}
