// Reconnect policy: the delay before each attempt, and notices about an outage that lasts.
import { setTimeout as sleep } from 'node:timers/promises'

export type ReconnectPolicy = {
  /** The connection was lost, or an attempt failed. */
  recordDisconnect(reason: string): void
  /** A connection is open. It ends the outage once it has lasted STABLE_MS. */
  recordConnect(): void
  /** Data arrived: the outage is over. */
  recordData(): void
  /**
   * Waits before the next attempt, at least `retryAfter` seconds if the server asked for that. Rejects when the signal
   * is aborted.
   */
  waitForRetry(retryAfter: number | null): Promise<void>
  close(): void
}

export type ReconnectOptions = {
  signal: AbortSignal
  /** An outage has lasted OUTAGE_NOTICE_MS. */
  onOutage(reason: string): void
  /** An outage that was reported is over. */
  onReconnect(): void
}

const MIN_BACKOFF_MS = 250
const MAX_BACKOFF_MS = 5000
const OUTAGE_NOTICE_MS = 3000
/** A connection that carried no data and closes sooner does not end the outage. */
const STABLE_MS = 1000

export function createReconnectPolicy({ signal, onOutage, onReconnect }: ReconnectOptions): ReconnectPolicy {
  let attempts = 0
  let lastReason = ''
  let isReported = false
  let outageTimer: NodeJS.Timeout | undefined
  let stableTimer: NodeJS.Timeout | undefined

  function endOutage(): void {
    attempts = 0
    if (outageTimer === undefined) return
    clearTimeout(outageTimer)
    outageTimer = undefined
    if (isReported) onReconnect()
    isReported = false
  }

  return {
    recordDisconnect(reason) {
      clearTimeout(stableTimer)
      lastReason = reason
      outageTimer ??= setTimeout(() => {
        isReported = true
        onOutage(lastReason)
      }, OUTAGE_NOTICE_MS).unref()
    },
    recordConnect() {
      stableTimer = setTimeout(endOutage, STABLE_MS).unref()
    },
    recordData: endOutage,
    async waitForRetry(retryAfter) {
      // Exponential backoff with full jitter: clients disconnected together should not reconnect together.
      const backoff = Math.random() * Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** attempts)
      attempts = Math.min(attempts + 1, 10)
      await sleep((retryAfter ?? 0) * 1000 + backoff, undefined, { signal })
    },
    close() {
      clearTimeout(outageTimer)
      clearTimeout(stableTimer)
    },
  }
}
