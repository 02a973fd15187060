// Limits of the requests that need no credential, per client address and in memory.
import { createRateLimiter, rejectLimited } from '../../base/rate-limiter.ts'
import { toSubject } from '../../http/client-address.ts'

/** Requests per address in a window of seconds. */
export const ADDRESS_LIMITS = {
  requestCode: { requests: 20, seconds: 600 },
  confirmCode: { requests: 60, seconds: 600 },
  ownerSignIn: { requests: 60, seconds: 600 },
  createAccount: { requests: 10, seconds: 3600 },
  // A fleet of machines may share one address. The limit protects the database: tokens cannot be guessed.
  enroll: { requests: 300, seconds: 600 },
} as const
export type LimitedAction = keyof typeof ADDRESS_LIMITS

export type AddressLimiter = {
  /** Rejects with rate_limited and Retry-After. */
  count(action: LimitedAction, address: string | null): Promise<void>
}

/** @param factor multiplies the limits, for tests */
export function createAddressLimiter({ factor = 1 }: { factor?: number } = {}): AddressLimiter {
  const limiters = new Map(
    Object.entries(ADDRESS_LIMITS).map(([action, { requests, seconds }]) => [
      action,
      createRateLimiter({ requests: requests * factor, seconds }),
    ]),
  )
  return {
    async count(action, address) {
      const retryAfterMs = (await limiters.get(action)?.count(toSubject(address))) ?? 0
      if (retryAfterMs > 0) rejectLimited(retryAfterMs, 'Too many requests from this address.')
    },
  }
}
