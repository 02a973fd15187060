// Counts requests per second and acquired slots per key, in memory.
import { createRateLimiter } from '../base/rate-limiter.ts'

/** One of `limit` concurrent uses of a key. */
export type Slot = { key: string; limit: number }

export type SlotAcquisition =
  | {
      /** Releases the slots. Idempotent. */
      release: () => void
    }
  | {
      /** The slot whose limit is reached. */
      full: Slot
    }

/** Storage of the limits. Replicas will need a shared one. */
export type LimitStore = {
  /** Counts a request. Resolves with 0, or with the milliseconds until another request is allowed. */
  countRequest(key: string): Promise<number>
  /** As countRequest(), for the opening of a forwarded connection. */
  countForward(key: string): Promise<number>
  /** Acquires all slots, or none when one of them is full. */
  acquire(slots: readonly Slot[]): Promise<SlotAcquisition>
  /** Number of acquisitions that are not released. */
  acquiredCount(): number
}

/** A key without acquired slots uses no memory. */
export function createMemoryStore(requestsPerSecond: number, forwardsPerSecond: number): LimitStore {
  const requestLimiter = createRateLimiter({ requests: requestsPerSecond, seconds: 1 })
  const forwardLimiter = createRateLimiter({ requests: forwardsPerSecond, seconds: 1 })
  const acquired = new Map<string, number>()
  let acquiredCount = 0

  return {
    countRequest: requestLimiter.count,
    countForward: forwardLimiter.count,
    async acquire(slots) {
      const full = slots.find(({ key, limit }) => (acquired.get(key) ?? 0) >= limit)
      if (full) return { full }
      for (const { key } of slots) acquired.set(key, (acquired.get(key) ?? 0) + 1)
      acquiredCount += 1
      let isReleased = false
      return {
        release() {
          if (isReleased) return
          isReleased = true
          acquiredCount -= 1
          for (const { key } of slots) {
            const count = (acquired.get(key) ?? 0) - 1
            if (count > 0) acquired.set(key, count)
            else acquired.delete(key)
          }
        },
      }
    },
    acquiredCount: () => acquiredCount,
  }
}
