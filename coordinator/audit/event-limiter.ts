// Limits the requests that only add an event: reports of clients, and downloads. In memory, per credential.
import { createRateLimiter, rejectLimited } from '../base/rate-limiter.ts'

/** The returned function counts a request of the credential. It rejects with rate_limited and Retry-After. */
export function createEventLimiter(perSecond: number): (credentialId: string) => Promise<void> {
  const limiter = createRateLimiter({ requests: perSecond, seconds: 1 })
  return async (credentialId) => {
    const retryAfterMs = await limiter.count(credentialId)
    if (retryAfterMs === 0) return
    rejectLimited(retryAfterMs, `The limit of ${perSecond} reports and downloads per second is reached.`)
  }
}
