// Counts requests per second and acquired slots per key, in memory.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Clock } from '../../shared/clock.ts'

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
      /** When its oldest holder acquired it, in milliseconds since the epoch. */
      since: number
    }

/** Storage of the limits. Replicas will need a shared one. */
export type LimitStore = {
  /** Counts a request. Resolves with 0, or with the milliseconds until another request is allowed. */
  countRequest(key: string): Promise<number>
  /** Acquires all slots, or none when one of them is full. */
  acquire(slots: readonly Slot[]): Promise<SlotAcquisition>
  /** Number of acquisitions that are not released. */
  acquiredCount(): number
}

/** A key without acquired slots uses no memory. */
export function createMemoryStore(requestsPerSecond: number, clock: Clock): LimitStore {
  const rate = new RateLimiterMemory({ points: requestsPerSecond, duration: 1 })
  /** Per key, oldest first. */
  const holders = new Map<string, Set<{ since: number }>>()
  let acquiredCount = 0

  return {
    async countRequest(key) {
      try {
        await rate.consume(key)
        return 0
      } catch (rejection) {
        if (!(rejection instanceof RateLimiterRes)) throw rejection
        return Math.max(1, rejection.msBeforeNext)
      }
    },
    async acquire(slots) {
      for (const slot of slots) {
        const [oldest, ...others] = holders.get(slot.key) ?? []
        if (oldest && others.length + 1 >= slot.limit) return { full: slot, since: oldest.since }
      }
      const holder = { since: clock.now() }
      for (const { key } of slots) {
        const keyHolders = holders.get(key) ?? new Set()
        holders.set(key, keyHolders.add(holder))
      }
      acquiredCount += 1
      let isReleased = false
      return {
        release() {
          if (isReleased) return
          isReleased = true
          acquiredCount -= 1
          for (const { key } of slots) {
            const keyHolders = holders.get(key)
            keyHolders?.delete(holder)
            if (keyHolders?.size === 0) holders.delete(key)
          }
        },
      }
    },
    acquiredCount: () => acquiredCount,
  }
}
