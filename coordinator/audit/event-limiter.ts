// Limits the requests that only add an event: reports of clients, and downloads. In memory, per credential and per user.
import { createRateLimiter, rejectLimited } from '../base/rate-limiter.ts'
import type { Actor } from '../http/actor.ts'

export type EventLimits = { perCredential: number; perUser: number }

/** The returned function counts a request of the actor. It rejects with rate_limited and Retry-After. */
export function createEventLimiter({ perCredential, perUser }: EventLimits): (actor: Actor) => Promise<void> {
  const byCredential = createRateLimiter({ requests: perCredential, seconds: 1 })
  const byUser = createRateLimiter({ requests: perUser, seconds: 1 })
  const reject = (retryAfterMs: number, holder: string, limit: number) =>
    rejectLimited(
      retryAfterMs,
      `${holder} has reached the limit of ${limit} reports and downloads per second.`,
    )
  return async ({ credential, userId }) => {
    const credentialMs = await byCredential.count(credential.id)
    if (credentialMs > 0) reject(credentialMs, 'This API key or session', perCredential)
    const userMs = await byUser.count(userId ?? credential.id)
    if (userMs > 0) reject(userMs, 'Your user', perUser)
  }
}
