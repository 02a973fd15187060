// Limits of the requests that need no credential, per client address and in memory.
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ApiError } from '../../shared/errors.ts'

/** Requests per address in a window of seconds. */
export const ADDRESS_LIMITS = {
  requestCode: { points: 20, duration: 600 },
  confirmCode: { points: 60, duration: 600 },
  ownerSignIn: { points: 60, duration: 600 },
  createAccount: { points: 10, duration: 3600 },
  // A fleet of machines may share one address. The limit protects the database: tokens cannot be guessed.
  enroll: { points: 300, duration: 600 },
} as const
export type LimitedAction = keyof typeof ADDRESS_LIMITS

export type AddressLimiter = {
  /** Rejects with rate_limited and Retry-After. */
  count(action: LimitedAction, address: string | null): Promise<void>
}

/** @throws ApiError rate_limited with Retry-After */
export function rejectLimited(retryAfterMs: number, problem: string): never {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  throw new ApiError('rate_limited', `${problem} Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  })
}

/** @param factor multiplies the limits, for tests */
export function createAddressLimiter({ factor = 1 }: { factor?: number } = {}): AddressLimiter {
  const limiters = new Map(
    Object.entries(ADDRESS_LIMITS).map(([action, { points, duration }]) => [
      action,
      new RateLimiterMemory({ points: points * factor, duration }),
    ]),
  )
  return {
    async count(action, address) {
      try {
        await limiters.get(action)?.consume(toSubject(address))
      } catch (rejection) {
        if (!(rejection instanceof RateLimiterRes)) throw rejection
        rejectLimited(rejection.msBeforeNext, 'Too many requests from this address.')
      }
    },
  }
}

/** null: the client is connected to the socket for agents. */
export function getClientAddress({ ip, socket }: FastifyRequest): string | null {
  // X-Forwarded-For may contain any text.
  const address = ipaddr.isValid(ip ?? '') ? ip : (socket.remoteAddress ?? '')
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : null
}

/** A client usually has all IPv6 addresses of its /64 network. */
export function toSubject(address: string | null): string {
  if (address === null) return 'none'
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
