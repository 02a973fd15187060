// Limits the requests that only add an event: reports of clients, and downloads. In memory, per credential.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ApiError } from '../../shared/errors.ts'

/** The returned function counts a request of the credential. It rejects with rate_limited and Retry-After. */
export function createEventLimiter(perSecond: number): (credentialId: string) => Promise<void> {
  const limiter = new RateLimiterMemory({ points: perSecond, duration: 1 })
  return async (credentialId) => {
    try {
      await limiter.consume(credentialId)
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection
      const seconds = Math.max(1, Math.ceil(rejection.msBeforeNext / 1000))
      throw new ApiError(
        'rate_limited',
        `The limit of ${perSecond} reports and downloads per second is reached. Try again in ${seconds} s.`,
        { headers: { 'retry-after': String(seconds) } },
      )
    }
  }
}
