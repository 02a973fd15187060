// Pauses between connections to a stream, and when the client stops retrying.
import { wait } from './calls.ts'
import type { BoxwoodError } from './errors.ts'

const BACKOFF_MS = { first: 250, max: 5_000 }
/** A response of a proxy or coordinator that is being restarted, and an agent that is not connected. */
const TEMPORARY_STATUSES = new Set([0, 408, 429, 500, 502, 503, 504])

export type Reconnect = {
  /** Data has arrived: the outage is over. */
  recordData(): void
  /** Waits before the next attempt. Throws the error when another attempt cannot help, or the outage has lasted too long. */
  waitAfter(error: BoxwoodError): Promise<void>
}

/** @param outageMs how long an outage may last, in milliseconds */
export function createReconnect(outageMs: number, signal: AbortSignal | undefined): Reconnect {
  let attempts = 0
  let beganAt: number | null = null
  return {
    recordData() {
      attempts = 0
      beganAt = null
    },
    async waitAfter(error) {
      signal?.throwIfAborted()
      const now = performance.now()
      beganAt ??= now
      if (!TEMPORARY_STATUSES.has(error.status) || now - beganAt > outageMs) throw error
      const backoffMs = Math.random() * Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** attempts)
      attempts += 1
      await wait(Math.max(backoffMs, error.retryAfterMs ?? 0), signal)
    },
  }
}
