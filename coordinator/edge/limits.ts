// The edge's limits (spec §8): requests a second and requests at once, each per token and per box.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ApiError } from '../../shared/errors.ts'

export type EdgeLimits = {
  /** Requests a second, for each token and for each box. */
  requestsPerSecond: number
  /** Requests at once, for each token and for each box. */
  concurrency: number
}

export type EdgeLimiter = {
  /**
   * Takes a slot of the token and of the box; give it back exactly once, when the answer has ended.
   * Rejects with rate_limited and a Retry-After in whole seconds; then nothing was taken.
   */
  take(tokenId: string, boxId: string): Promise<() => void>
  /** Slots held now, for tests and metrics. */
  held(): number
}

function refuse(retryAfterMs: number, message: string): never {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  throw new ApiError('rate_limited', message, { headers: { 'retry-after': String(seconds) } })
}

/** How many requests each key has under way. A key with none takes no memory. */
function slotCounter(limit: number) {
  const running = new Map<string, number>()
  return {
    full: (key: string) => (running.get(key) ?? 0) >= limit,
    add(key: string) {
      running.set(key, (running.get(key) ?? 0) + 1)
    },
    remove(key: string) {
      const left = (running.get(key) ?? 0) - 1
      if (left > 0) running.set(key, left)
      else running.delete(key)
    },
    total: () => [...running.values()].reduce((sum, count) => sum + count, 0),
  }
}

/** Limits kept in this process's memory. A shared store replaces the two limiters when there are replicas. */
export function createEdgeLimiter(limits: EdgeLimits): EdgeLimiter {
  const rate = new RateLimiterMemory({ points: limits.requestsPerSecond, duration: 1 })
  const slots = slotCounter(limits.concurrency)

  async function count(key: string, whose: string) {
    try {
      await rate.consume(key)
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      refuse(refusal.msBeforeNext, `More than ${limits.requestsPerSecond} requests a second ${whose}.`)
    }
  }

  return {
    async take(tokenId, boxId) {
      const token = `token:${tokenId}`
      const box = `box:${boxId}`
      await count(token, 'with this key')
      await count(box, 'for this box')
      for (const [key, whose] of [
        [token, 'with this key'],
        [box, 'for this box'],
      ] as const)
        if (slots.full(key)) refuse(1000, `${limits.concurrency} requests are under way ${whose} already.`)
      slots.add(token)
      slots.add(box)
      let given = false
      return () => {
        if (given) return
        given = true
        slots.remove(token)
        slots.remove(box)
      }
    },
    held: () => slots.total() / 2,
  }
}
