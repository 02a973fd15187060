// Polls until a condition is met. Tolerates a restart of the coordinator.
import { setTimeout as sleep } from 'node:timers/promises'
import { boxCommand } from '../command-name.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

export type WaitSession = Pick<Session, 'client' | 'signal'>

/** An operation may copy all files of a box. */
const DEFAULT_TIMEOUT_MS = 60 * 60_000
const MIN_POLL_INTERVAL_MS = 25
const MAX_POLL_INTERVAL_MS = 1000
/** Maximum time without a response. After a restart of the coordinator the change continues. */
const UNREACHABLE_GRACE_MS = 30_000

export type PollUntilOptions<T> = {
  /** The subject of the timeout message. */
  subject: string
  timeoutMs?: number
  /** null: not yet. */
  getResult(): Promise<T | null>
  createTimeoutError?(): CliError
}

/** Calls `getResult` until the result is not null. @throws CliError after the timeout; the signal's reason */
export async function pollUntil<T>(
  { signal }: WaitSession,
  { subject, timeoutMs = DEFAULT_TIMEOUT_MS, getResult, createTimeoutError }: PollUntilOptions<T>,
): Promise<T> {
  const startedAt = Date.now()
  let lastResponseAt = startedAt
  let interval = MIN_POLL_INTERVAL_MS
  for (;;) {
    try {
      const result = await getResult()
      if (result !== null) return result
      lastResponseAt = Date.now()
    } catch (error) {
      const isUnreachable = error instanceof CliError && error.exitCode === EXIT.unreachable
      if (!isUnreachable || Date.now() - lastResponseAt > UNREACHABLE_GRACE_MS) throw error
    }
    const remaining = startedAt + timeoutMs - Date.now()
    if (remaining <= 0) throw createTimeoutError?.() ?? toTimeoutError(subject, timeoutMs)
    await sleep(Math.min(interval, remaining), undefined, { signal }).catch((error) => {
      throw signal.aborted ? signal.reason : error
    })
    interval = Math.min(interval * 1.5, MAX_POLL_INTERVAL_MS)
  }
}

const toTimeoutError = (subject: string, timeoutMs: number): CliError =>
  new CliError(
    EXIT.failed,
    `${subject} is not complete after ${timeoutMs / 60_000} minutes and continues. Check the state with \`${boxCommand()} ls\`.`,
  )
