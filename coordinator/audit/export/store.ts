// Queries of the export of the audit log.
import { isFreeFor } from '../../db/is-alive.ts'
import type { Db } from '../../db/open.ts'
import type { AuditEventRow, AuditHeadRow, AuditSinkRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const findSink = (db: Db | Trx, workspaceId: string): Promise<AuditSinkRow | undefined> =>
  db.selectFrom('audit_sinks').selectAll().where('workspace_id', '=', workspaceId).executeTakeFirst()

export async function findHead(
  db: Db | Trx,
  workspaceId: string,
): Promise<Pick<AuditHeadRow, 'no' | 'pruned_no'>> {
  const head = await db
    .selectFrom('audit_heads')
    .select(['no', 'pruned_no'])
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return head ?? { no: 0, pruned_no: 0 }
}

export async function writeSink(trx: Trx, row: AuditSinkRow): Promise<void> {
  await trx
    .insertInto('audit_sinks')
    .values(row)
    .onConflict((conflict) => conflict.column('workspace_id').doUpdateSet(row))
    .execute()
}

export const deleteSink = (trx: Trx, workspaceId: string) =>
  trx.deleteFrom('audit_sinks').where('workspace_id', '=', workspaceId).execute()

/** Claims the deliveries to an endpoint for a coordinator. Returns false when another one that is alive delivers. */
export async function claimSink(db: Db, workspaceId: string, owner: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('audit_sinks')
    .set({ lease_owner: owner })
    .where('workspace_id', '=', workspaceId)
    .where(isFreeFor(db, 'audit_sinks', owner))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** All workspaces with an endpoint, and whether events are not delivered yet. */
export const listSinks = (db: Db): Promise<{ workspace_id: string; is_pending: boolean }[]> =>
  db
    .selectFrom('audit_sinks')
    .leftJoin('audit_heads', 'audit_heads.workspace_id', 'audit_sinks.workspace_id')
    .select(['audit_sinks.workspace_id', 'audit_sinks.delivered_no', 'audit_heads.no'])
    .execute()
    .then((rows) =>
      rows.map(({ workspace_id, delivered_no, no }) => ({
        workspace_id,
        is_pending: (no ?? 0) > delivered_no,
      })),
    )

/** The first events after the number, ascending. */
export const listEventsAfter = (
  db: Db,
  workspaceId: string,
  no: number,
  limit: number,
): Promise<AuditEventRow[]> =>
  db
    .selectFrom('audit_log')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('no', '>', no)
    .orderBy('no')
    .limit(limit)
    .execute()

type Progress = Partial<
  Pick<AuditSinkRow, 'delivered_no' | 'attempt' | 'next_attempt_at' | 'last_error' | 'last_delivered_at'>
>

/** Changes nothing when the position or the secret, and with it the URL, has been changed since `read` was read. */
const updateIfUnchanged = (db: Db, read: AuditSinkRow, progress: Progress) =>
  db
    .updateTable('audit_sinks')
    .set(progress)
    .where('workspace_id', '=', read.workspace_id)
    .where('secret', '=', read.secret)
    .where('delivered_no', '=', read.delivered_no)

export async function recordDelivery(
  db: Db,
  read: AuditSinkRow,
  { deliveredThrough, now }: { deliveredThrough: number; now: number },
): Promise<void> {
  await updateIfUnchanged(db, read, {
    delivered_no: deliveredThrough,
    last_delivered_at: now,
    attempt: 0,
    next_attempt_at: null,
    last_error: null,
  }).execute()
}

/** Changes nothing when the endpoint has been configured since `read` was read, which requests another attempt. */
export async function recordFailure(
  db: Db,
  read: AuditSinkRow,
  failure: Pick<AuditSinkRow, 'attempt' | 'next_attempt_at' | 'last_error'>,
): Promise<void> {
  await updateIfUnchanged(db, read, failure).where('updated_at', '=', read.updated_at).execute()
}
