// Reports an outage of a stream that lasts for seconds, and its end, to the user.
import type { BoxwoodError } from '../../client/http/errors.ts'
import { CliError } from '../output/exit-codes.ts'

export type NoticeOptions = {
  /** Called when an outage has lasted OUTAGE_NOTICE_MS. */
  onOutage(reason: string): void
  /** Called at the end of an outage that was reported to `onOutage`. */
  onReconnect(): void
}

export type OutageNotices = {
  /** The connection is lost, or an attempt has failed. */
  recordDisconnect(reason: string): void
  /** A connection is open. The outage ends after STABLE_CONNECTION_MS without a disconnect. */
  recordConnect(): void
  /** Data has arrived: the outage is over. */
  recordData(): void
  close(): void
}

const OUTAGE_NOTICE_MS = 3000
const STABLE_CONNECTION_MS = 1000

export function createOutageNotices({ onOutage, onReconnect }: NoticeOptions): OutageNotices {
  let lastReason = ''
  let isReported = false
  let outageTimer: NodeJS.Timeout | undefined
  let stableTimer: NodeJS.Timeout | undefined

  function endOutage(): void {
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
      clearTimeout(stableTimer)
      stableTimer = setTimeout(endOutage, STABLE_CONNECTION_MS).unref()
    },
    recordData: endOutage,
    close() {
      clearTimeout(outageTimer)
      clearTimeout(stableTimer)
    },
  }
}

/** @param toCliError see EdgeClient */
export function describeOutage(error: BoxwoodError, toCliError: (error: unknown) => unknown): string {
  // Without a request that has failed, an open connection was lost.
  if (error.status === 0 && !(error.cause instanceof CliError)) return 'The connection was lost.'
  const translated = toCliError(error)
  return translated instanceof CliError ? translated.message : error.message
}
