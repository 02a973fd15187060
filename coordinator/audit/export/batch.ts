// The signed request that delivers a batch of events.
import type { AuditDelivery } from '../../../shared/api/audit-sink.ts'
import type { AuditEventRow, AuditSinkRow } from '../../db/schema.ts'
import { presentEvent } from '../present.ts'
import type { PostRequest } from './post.ts'
import { signDelivery } from './signature.ts'

/** The maximum length of the details of a batch. A client may report details of 9 KiB. */
const MAX_BATCH_CHARS = 1024 * 1024

/** The first events whose details fit in a batch. At least one. */
export function limitSize(rows: readonly AuditEventRow[]): AuditEventRow[] {
  let chars = 0
  const end = rows.findIndex(({ detail }, index) => {
    chars += detail?.length ?? 0
    return index > 0 && chars > MAX_BATCH_CHARS
  })
  return rows.slice(0, end === -1 ? rows.length : end)
}

/** @param range the numbers of the first and the last event */
export function createBatchRequest(
  sink: AuditSinkRow,
  rows: readonly AuditEventRow[],
  { first, last }: { first: number; last: number },
  { now, userAgent }: { now: number; userAgent: string },
): PostRequest {
  const delivery: AuditDelivery = {
    workspaceId: sink.workspace_id,
    events: rows.map(presentEvent),
    skippedThrough: first > sink.delivered_no + 1 ? first - 1 : null,
  }
  const body = JSON.stringify(delivery)
  const id = `${sink.workspace_id}_${first}_${last}`
  const signature = signDelivery({ id, body, now }, sink.secret)
  const headers = { 'content-type': 'application/json', 'user-agent': userAgent, ...signature }
  return { url: sink.url, headers, body }
}
