// Who has how many requests under way, and how many in this second: in this process's memory.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Clock } from '../../shared/clock.ts'

export type Slot = { key: string; limit: number }

export type SlotAcquisition =
  | {
      /** Gives the places back. A second time does nothing. */
      release: () => void
    }
  | {
      full: Slot
      /** When the oldest of those that hold it took it; milliseconds since the epoch. */
      since: number
    }

/** What the limits count in. Replicas will have one that they share. */
export type LimitStore = {
  /** Counts a request of the key. Resolves with 0, or with the milliseconds until there is room for one again. */
  countRequest(key: string): Promise<number>
  /** Takes all of the places, or none when one of them is full. */
  acquire(places: readonly Slot[]): Promise<SlotAcquisition>
  /** How many takings have not been given back. */
  acquiredCount(): number
}

/** A key that has nothing under way takes no memory. */
export function createMemoryStore(requestsPerSecond: number, clock: Clock): LimitStore {
  const rate = new RateLimiterMemory({ points: requestsPerSecond, duration: 1 })
  /** Of each key the takings, oldest first. */
  const holders = new Map<string, Set<{ since: number }>>()
  let held = 0

  return {
    async countRequest(key) {
      try {
        await rate.consume(key)
        return 0
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal
        return Math.max(1, refusal.msBeforeNext)
      }
    },
    async acquire(places) {
      for (const place of places) {
        const [oldest, ...more] = holders.get(place.key) ?? []
        if (oldest && more.length + 1 >= place.limit) return { full: place, since: oldest.since }
      }
      const taking = { since: clock.now() }
      for (const { key } of places) {
        const all = holders.get(key) ?? new Set()
        holders.set(key, all.add(taking))
      }
      held += 1
      let given = false
      return {
        release() {
          if (given) return
          given = true
          held -= 1
          for (const { key } of places) {
            const all = holders.get(key)
            all?.delete(taking)
            if (all?.size === 0) holders.delete(key)
          }
        },
      }
    },
    acquiredCount: () => held,
  }
}
