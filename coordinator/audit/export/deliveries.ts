// Delivers the audit events of each workspace to its HTTPS endpoint: in order, at least once, one request at a time.
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { backoffDelay, equalJitter } from '../../../shared/backoff.ts'
import type { Clock } from '../../../shared/clock.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { Db } from '../../db/open.ts'
import type { AuditSinkRow } from '../../db/schema.ts'
import { onAuditEvents } from '../service.ts'
import { createBatchRequest, limitSize } from './batch.ts'
import type { Post } from './post.ts'
import { findSink, listEventsAfter, listSinks, recordDelivery, recordFailure } from './store.ts'
import type { SetTimer } from './timers.ts'
import { WorkspaceRuns } from './workspace-runs.ts'

export type Deliveries = {
  /** Continues the deliveries that an earlier coordinator has not completed. */
  start(): Promise<void>
  /** Call it after the endpoint of the workspace has been configured or deleted. Delivers at once, also after failures. */
  onSinkChange(workspaceId: string): void
  /** Aborts the requests in flight, which are sent again after the next start. */
  close(): Promise<void>
}

export type DeliveriesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'error'>
  post: Post
  setTimer: SetTimer
  userAgent: string
  random?: () => number
}

const { batchEvents, maxRetrySeconds } = LIMITS.auditSink
/**
 * Requests in flight. An endpoint that has responded slowly or failed uses the second limit, so that the others do not wait for
 * it.
 */
const CONCURRENCY = { fast: 16, slow: 16 }
const SLOW_MS = 1_000
const RETRY_BACKOFF = { baseMs: 5_000, maxMs: maxRetrySeconds * 1000 }
const RETRY_AFTER_STORE_ERROR_MS = 5_000

/**
 * Milliseconds until the next attempt: doubles from 5 s to 1 h, with equal jitter.
 * @param failures 1 or more
 */
export const getRetryDelay = (failures: number, random = Math.random): number =>
  backoffDelay(failures - 1, RETRY_BACKOFF, equalJitter, random)

export function createDeliveries(options: DeliveriesOptions): Deliveries {
  const { db, clock, log, post, setTimer, userAgent, random } = options
  const closing = new AbortController()
  /** The workspaces with an endpoint: events of the others cost nothing. */
  const workspaceIds = new Set<string>()
  const slow = new Set<string>()
  const limits = { fast: pLimit(CONCURRENCY.fast), slow: pLimit(CONCURRENCY.slow) }
  const runs = new WorkspaceRuns({
    run(workspaceId) {
      const limit = slow.has(workspaceId) ? limits.slow : limits.fast
      return limit(() => deliverBatch(workspaceId))
    },
    onError(err, workspaceId) {
      log.error({ err, workspaceId }, 'failed to read or store the progress of an audit export; will retry')
      runs.retryIn(workspaceId, RETRY_AFTER_STORE_ERROR_MS)
    },
    setTimer,
    closing: closing.signal,
  })
  let removeListener: () => void = () => undefined

  /** Returns whether there may be more events to deliver now. */
  async function deliverBatch(workspaceId: string): Promise<boolean> {
    if (closing.signal.aborted) return false
    const sink = await findSink(db, workspaceId)
    if (sink === undefined) {
      workspaceIds.delete(workspaceId)
      slow.delete(workspaceId)
      return false
    }
    const waitMs = (sink.next_attempt_at ?? 0) - clock.now()
    if (waitMs > 0) {
      runs.retryIn(workspaceId, Math.min(waitMs, RETRY_BACKOFF.maxMs))
      return false
    }
    const rows = limitSize(await listEventsAfter(db, workspaceId, sink.delivered_no, batchEvents))
    const [first, last] = [rows[0], rows.at(-1)]
    if (first === undefined || last === undefined) return false
    const startedAt = clock.now()
    const range = { first: first.no, last: last.no }
    const request = createBatchRequest(sink, rows, range, { now: startedAt, userAgent })
    const result = await post(request, closing.signal)
    if (closing.signal.aborted && !result.delivered) return false
    const now = clock.now()
    if (result.delivered && now - startedAt < SLOW_MS) slow.delete(workspaceId)
    else slow.add(workspaceId)
    if (result.delivered) await recordDelivery(db, sink, { deliveredThrough: last.no, now })
    else await handleFailure(sink, result.error, now)
    // The endpoint may have been changed during a failed attempt. Otherwise the next call waits for the retry.
    return true
  }

  async function handleFailure(sink: AuditSinkRow, error: string, now: number): Promise<void> {
    const attempt = sink.attempt + 1
    const nextAttemptAt = now + getRetryDelay(attempt, random)
    // The URL is not logged: its path may be a secret of the endpoint.
    log.info(
      { workspaceId: sink.workspace_id, host: new URL(sink.url).host, attempt, error },
      'failed to deliver audit events; will retry',
    )
    await recordFailure(db, sink, { attempt, next_attempt_at: nextAttemptAt, last_error: error })
  }

  return {
    async start() {
      removeListener = onAuditEvents(db, (workspaceId) => {
        if (workspaceIds.has(workspaceId)) runs.request(workspaceId)
      })
      for (const { workspace_id: workspaceId, is_pending: isPending } of await listSinks(db)) {
        workspaceIds.add(workspaceId)
        if (isPending) runs.request(workspaceId)
      }
    },
    onSinkChange(workspaceId) {
      workspaceIds.add(workspaceId)
      runs.cancelRetry(workspaceId)
      runs.request(workspaceId)
    },
    async close() {
      closing.abort()
      removeListener()
      await runs.close()
    },
  }
}
