// Follows a stream of a box as long as it takes, with the notices and the errors of a command.
import type { BoxwoodError } from '../../client/http/errors.ts'
import { isTemporary } from '../../client/http/reconnect.ts'
import type { ResumeOptions } from '../../client/http/resume.ts'
import type { EdgeClient } from '../connection/client.ts'
import { createOutageNotices, describeOutage, type NoticeOptions } from './outage-notices.ts'

export type FollowOptions = NoticeOptions & {
  edge: Pick<EdgeClient, 'openStream' | 'toCliError'>
  signal: AbortSignal
  /** Called once while a limit of the coordinator delays the first event. */
  onWait?(reason: string): void
  /** Called when the box is not running after the first event. True: throw that error. Default: retry. */
  isBoxStopped?(): Promise<boolean>
  /** A connection without data for this long is closed. Default: three heartbeat intervals, 45 s. */
  idleTimeoutMs?: number
}

export type Resuming = Pick<
  ResumeOptions<unknown>,
  'signal' | 'outageMs' | 'idleMs' | 'onConnection' | 'canRetry'
>

/**
 * Yields what `read` yields. Throws the signal's reason, and CliError when a new connection cannot help: the key is
 * rejected, or the box or the process does not exist. Until the first event has arrived, also when the box is not running or
 * the URL is not that of a coordinator.
 * @param route of the box, for the words of an error
 */
export async function* followStream<Item, Result>(
  route: string,
  { edge, signal, onWait, isBoxStopped, idleTimeoutMs, ...notices }: FollowOptions,
  read: (resuming: Resuming) => AsyncGenerator<Item, Result, undefined>,
): AsyncGenerator<Item, Result, undefined> {
  const outage = createOutageNotices(notices)
  const getReason = (error: BoxwoodError) => describeOutage(error, (reason) => edge.toCliError(reason, route))
  let rejections = 0
  const items = read({
    signal,
    outageMs: Number.POSITIVE_INFINITY,
    idleMs: idleTimeoutMs,
    async canRetry(error, wasConnected) {
      const { code } = error
      // When a connection was lost, the coordinator may still count it.
      if (!wasConnected && code === 'customer_session_limit') return false
      if (code === 'box_not_running') return wasConnected && !(await isBoxStopped?.())
      // The slot of a connection that was just closed may still be occupied at the first attempt.
      if (!wasConnected && code === 'rate_limited') rejections += 1
      return isTemporary(error, wasConnected)
    },
    onConnection(error) {
      if (error === null) outage.recordConnect()
      else if (rejections === 0 || error.code !== 'rate_limited') outage.recordDisconnect(getReason(error))
      else if (rejections === 2) onWait?.(getReason(error))
    },
  })
  try {
    for (;;) {
      const next = await items.next()
      if (next.done) return next.value
      outage.recordData()
      yield next.value
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : edge.toCliError(error, route)
  } finally {
    outage.close()
    // A consumer that stops reading closes the connection.
    await items.return(undefined as Result)
  }
}
