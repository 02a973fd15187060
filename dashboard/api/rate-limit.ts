// Repeats requests that the coordinator has refused because there were too many: it has not executed them.
import type { Fetch } from './send.ts'

export type RateLimitOptions = {
  fetch: Fetch
  /** Waits. Rejects when the signal is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
  /** From 0 to 1. */
  random(): number
}

/** A user does not wait longer for a response. Limits of sign-ins and invitations have minutes. */
const MAX_WAIT_SECONDS = 5
const MAX_ATTEMPTS = 5

/**
 * The same as fetch(). When the response has status 429 and a `Retry-After` of at most 5 s, the request is repeated, up to 5
 * attempts. Bodies must be such that they can be sent again: text or a Blob.
 */
export const createRetryingFetch =
  ({ fetch, wait, random }: RateLimitOptions): Fetch =>
  async (input, init) => {
    for (let attempt = 1; ; attempt += 1) {
      const response = await fetch(input, init)
      const seconds = Number(response.headers.get('retry-after') || Number.POSITIVE_INFINITY)
      if (response.status !== 429 || !(seconds <= MAX_WAIT_SECONDS) || attempt === MAX_ATTEMPTS)
        return response
      response.body?.cancel().catch(() => undefined)
      // Requests that were refused together are not repeated together.
      await wait(seconds * 1000 * (1 + random() / 4), init?.signal ?? undefined)
    }
  }
