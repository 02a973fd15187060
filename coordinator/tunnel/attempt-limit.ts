// Limits how often one box may connect, so that an agent in a reconnect loop does not slow the others.
import type { Clock } from '../../shared/clock.ts'

export type AttemptLimit = {
  /** Counts an attempt. Returns 0 when it is allowed, else the milliseconds until the next one is. */
  attempt(boxId: string): number
}

/** Token bucket: `burst` attempts, refilled evenly over `refillMs`. To be called for authenticated boxes only. */
export function createAttemptLimit(clock: Clock, { burst = 60, refillMs = 60_000 } = {}): AttemptLimit {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const msPerToken = refillMs / burst
  return {
    attempt(boxId) {
      const now = clock.now()
      const bucket = buckets.get(boxId) ?? { tokens: burst, at: now }
      const tokens = Math.min(burst, bucket.tokens + Math.max(0, now - bucket.at) / msPerToken)
      const isAllowed = tokens >= 1
      // Delete and set: keeps the map ordered by last use, so that the loop below finds full buckets first.
      buckets.delete(boxId)
      buckets.set(boxId, { tokens: isAllowed ? tokens - 1 : tokens, at: now })
      for (const [id, { at }] of buckets) {
        if (now - at < refillMs) break
        buckets.delete(id)
      }
      return isAllowed ? 0 : Math.ceil((1 - tokens) * msPerToken)
    },
  }
}
