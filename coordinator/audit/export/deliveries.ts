// Delivers the audit events of each workspace to its HTTPS endpoint: in order, at least once, one request at a time.
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { backoffDelay, equalJitter } from '../../../shared/backoff.ts'
import type { Clock } from '../../../shared/clock.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { defineTopic, notify, subscribe } from '../../db/notifications.ts'
import type { Db } from '../../db/open.ts'
import type { AuditSinkRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import type { Replica } from '../../replicas/replica.ts'
import { subscribeToAuditEvents } from '../service.ts'
import { createBatchRequest, limitSize } from './batch.ts'
import type { Post } from './post.ts'
import { claimSink, findSink, listEventsAfter, listSinks, recordDelivery, recordFailure } from './store.ts'
import type { SetTimer } from './timers.ts'
import { WorkspaceRuns } from './workspace-runs.ts'

export type Deliveries = {
  /** Continues the deliveries that an earlier coordinator has not completed. */
  start(): Promise<void>
  /** Aborts the requests in flight, which are sent again after the next start. */
  close(): Promise<void>
}

const AUDIT_SINKS = defineTopic<{ workspaceId: string }>('audit sinks')

/** The endpoint of the workspace is configured or deleted: the events are delivered at once after the commit, also after failures. */
export const recordSinkChange = (trx: Trx, workspaceId: string): void =>
  notify(trx, AUDIT_SINKS, { workspaceId })

export type DeliveriesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'error'>
  replica: Pick<Replica, 'id' | 'isShared' | 'isLeaseValid' | 'events'>
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
  const { db, clock, log, replica, post, setTimer, userAgent, random } = options
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
  let unsubscribe: (() => void)[] = []
  /** Aborts when this coordinator has lost its lease: another one delivers. */
  let lost = new AbortController()

  /** Returns whether there may be more events to deliver now. */
  async function deliverBatch(workspaceId: string): Promise<boolean> {
    if (closing.signal.aborted) return false
    const sink = await findSink(db, workspaceId)
    if (sink === undefined) {
      workspaceIds.delete(workspaceId)
      slow.delete(workspaceId)
      return false
    }
    if (replica.isShared && !(await claimSink(db, workspaceId, replica.id))) return false
    // The claim may have waited for the database until after the lease was lost.
    if (!replica.isLeaseValid) return false
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
    const signal = replica.isShared ? AbortSignal.any([closing.signal, lost.signal]) : closing.signal
    const result = await post(request, signal)
    if (signal.aborted && !result.delivered) return false
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

  async function requestPending(): Promise<void> {
    for (const { workspace_id: workspaceId, is_pending: isPending } of await listSinks(db)) {
      workspaceIds.add(workspaceId)
      if (isPending) runs.request(workspaceId)
    }
  }

  function onEvents(workspaceId: string): void {
    if (workspaceIds.has(workspaceId)) runs.request(workspaceId)
  }

  function onSinkChange({ workspaceId }: { workspaceId: string }): void {
    workspaceIds.add(workspaceId)
    runs.cancelRetry(workspaceId)
    runs.request(workspaceId)
  }

  function onGap(): void {
    requestPending().catch((err: unknown) =>
      log.error({ err }, 'failed to list the endpoints of audit events'),
    )
  }

  function onLost(): void {
    lost.abort()
    lost = new AbortController()
  }

  return {
    async start() {
      replica.events.on('lost', onLost)
      replica.events.on('regained', onGap)
      replica.events.on('stopped', onGap)
      unsubscribe = [
        subscribeToAuditEvents(db, onEvents, { onGap }),
        subscribe(db, AUDIT_SINKS, onSinkChange, { onGap }),
        () => {
          replica.events.off('lost', onLost)
          replica.events.off('regained', onGap)
          replica.events.off('stopped', onGap)
        },
      ]
      await requestPending()
    },
    async close() {
      closing.abort()
      for (const stop of unsubscribe) stop()
      await runs.close()
    },
  }
}
