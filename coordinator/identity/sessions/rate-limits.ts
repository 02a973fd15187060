// Limits of the requests that need no credential, per client and in memory. Above a limit a client is not refused for long: it
// has to send the requests more slowly.
import type { Clock } from '../../../shared/clock.ts'
import { rejectLimited } from '../../base/rate-limiter.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'

/** Requests at once, and the seconds in which another one is allowed. */
export const CLIENT_LIMITS = {
  requestCode: { burst: 20, everySeconds: 30 },
  requestCodeForEmail: { burst: 5, everySeconds: 300 },
  wrongCode: { burst: 60, everySeconds: 10 },
  wrongOwnerSecret: { burst: 60, everySeconds: 10 },
  createAccount: { burst: 10, everySeconds: 360 },
  // A fleet of machines may share one address. The limit protects the database: tokens cannot be guessed.
  enroll: { burst: 300, everySeconds: 2 },
} as const
export type LimitedAction = keyof typeof CLIENT_LIMITS

export type ClientLimiter = {
  /**
   * Counts an action of a client. Returns 0, or the milliseconds until the client is allowed another one.
   * @param client its address as toSubject(), or its user
   */
  take(action: LimitedAction, client: string): number
  /** Rejects with rate_limited and Retry-After. */
  count(action: LimitedAction, client: string): void
}

/** @param options.factor multiplies the limits, for tests */
export function createClientLimiter({ clock, factor = 1 }: { clock: Clock; factor?: number }): ClientLimiter {
  const buckets = new Map(
    Object.entries(CLIENT_LIMITS).map(([action, { burst, everySeconds }]) => [
      action,
      createTokenBuckets(clock, { capacity: burst * factor, perSecond: factor / everySeconds }),
    ]),
  )
  const take = (action: LimitedAction, client: string): number => buckets.get(action)?.take(client) ?? 0
  return {
    take,
    count(action, client) {
      const waitMs = take(action, client)
      if (waitMs > 0) rejectLimited(waitMs, TOO_MANY_REQUESTS)
    },
  }
}

export const TOO_MANY_REQUESTS = 'Too many requests from this address.'
