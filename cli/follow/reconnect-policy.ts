// Reconnect policy: the delay before each attempt, and a notification when an outage lasts for seconds.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffDelay, fullJitter } from '../../shared/backoff.ts'

export type ReconnectPolicy = {
  /** Call when the connection is lost or an attempt fails. */
  recordDisconnect(reason: string): void
  /** Call when a connection opens. Ends the outage after STABLE_CONNECTION_MS without a disconnect. */
  recordConnect(): void
  /** Call when data arrives. Ends the outage immediately. */
  recordData(): void
  /**
   * Waits before the next attempt. Rejects with the signal's reason.
   * @param retryAfter the minimum in seconds, from the Retry-After header; null if the response has none
   */
  waitBeforeRetry(retryAfter: number | null): Promise<void>
  close(): void
}

export type ReconnectOptions = {
  signal: AbortSignal
  /** Called when an outage has lasted OUTAGE_NOTICE_MS. */
  onOutage(reason: string): void
  /** Called at the end of an outage that was reported to `onOutage`. */
  onReconnect(): void
}

const BACKOFF = { baseMs: 250, maxMs: 5000 }
const OUTAGE_NOTICE_MS = 3000
/** A connection without data ends the outage only after this time. */
const STABLE_CONNECTION_MS = 1000

export function createReconnectPolicy({ signal, onOutage, onReconnect }: ReconnectOptions): ReconnectPolicy {
  let attempts = 0
  let lastReason = ''
  let isOutageReported = false
  let outageTimer: NodeJS.Timeout | undefined
  let stableTimer: NodeJS.Timeout | undefined

  function endOutage(): void {
    attempts = 0
    if (outageTimer === undefined) return
    clearTimeout(outageTimer)
    outageTimer = undefined
    if (isOutageReported) onReconnect()
    isOutageReported = false
  }

  return {
    recordDisconnect(reason) {
      clearTimeout(stableTimer)
      lastReason = reason
      outageTimer ??= setTimeout(() => {
        isOutageReported = true
        onOutage(lastReason)
      }, OUTAGE_NOTICE_MS).unref()
    },
    recordConnect() {
      clearTimeout(stableTimer)
      stableTimer = setTimeout(endOutage, STABLE_CONNECTION_MS).unref()
    },
    recordData: endOutage,
    async waitBeforeRetry(retryAfter) {
      // Exponential backoff with full jitter: clients disconnected together should not reconnect together.
      const backoff = backoffDelay(attempts, BACKOFF, fullJitter)
      attempts = Math.min(attempts + 1, 10)
      await sleep((retryAfter ?? 0) * 1000 + backoff, undefined, { signal }).catch((error) => {
        throw signal.aborted ? signal.reason : error
      })
    },
    close() {
      clearTimeout(outageTimer)
      clearTimeout(stableTimer)
    },
  }
}
