// Pauses between connections, and when the client stops reconnecting.
import { wait } from './calls.ts'
import type { BoxwoodError } from './errors.ts'

const BACKOFF_MS = { first: 250, max: 5_000 }
/** A connection without data ends the outage only after this time. */
const STABLE_CONNECTION_MS = 1_000
/** A response of a proxy or coordinator that is being restarted, and an agent that is not connected. */
const TEMPORARY_STATUSES = new Set([0, 408, 429, 500, 502, 503, 504])

/**
 * Whether another connection may succeed.
 * @param wasConnected whether one did before: then a response that no coordinator sends is that of a proxy in front of it
 */
export const isTemporary = ({ code, status }: BoxwoodError, wasConnected: boolean): boolean =>
  TEMPORARY_STATUSES.has(status) || (wasConnected && code === 'invalid_response')

export type Reconnect = {
  /** The connection is open. */
  recordAlive(): void
  /** Data has arrived: the outage is over. */
  recordData(): void
  /**
   * Waits before the next attempt. Throws the error when the outage has lasted too long, or would.
   * @param waitSignal ends the wait. Default: that of the stream
   */
  waitAfter(error: BoxwoodError, waitSignal?: AbortSignal): Promise<void>
}

/** @param outageMs how long an outage may last, in milliseconds */
export function createReconnect(outageMs: number, signal: AbortSignal | undefined): Reconnect {
  let attempts = 0
  let beganAt: number | null = null
  let aliveAt: number | null = null

  function recordData(): void {
    attempts = 0
    beganAt = null
  }

  return {
    recordAlive() {
      aliveAt ??= performance.now()
    },
    recordData,
    async waitAfter(error, waitSignal = signal) {
      waitSignal?.throwIfAborted()
      const now = performance.now()
      if (aliveAt !== null && now - aliveAt > STABLE_CONNECTION_MS) recordData()
      aliveAt = null
      beganAt ??= now
      const retryAfterMs = error.retryAfterMs ?? 0
      if (now - beganAt + retryAfterMs > outageMs) throw error
      const backoffMs = Math.random() * Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** attempts)
      attempts += 1
      await wait(Math.max(backoffMs, retryAfterMs), waitSignal)
    },
  }
}
