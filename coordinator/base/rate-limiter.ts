// Limits the requests per key in a window of time, in memory.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ApiError } from '../../shared/errors.ts'

export type RateLimiter = {
  /** Counts a request. Resolves with 0, or with the milliseconds until another request is allowed, at least 1. */
  count(key: string): Promise<number>
}

/** Allows this number of requests per key in each window of seconds. */
export function createRateLimiter(limit: { requests: number; seconds: number }): RateLimiter {
  const limiter = new RateLimiterMemory({ points: limit.requests, duration: limit.seconds })
  return {
    async count(key) {
      try {
        await limiter.consume(key)
        return 0
      } catch (rejection) {
        if (!(rejection instanceof RateLimiterRes)) throw rejection
        return Math.max(1, rejection.msBeforeNext)
      }
    },
  }
}

/** @throws ApiError rate_limited with Retry-After */
export function rejectLimited(retryAfterMs: number, problem: string, advice = 'Try again'): never {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  throw new ApiError('rate_limited', `${problem} ${advice} in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  })
}
