// Queries on the meters and the segments of boxes and snapshots.
import type { Db } from '../../db/open.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'
import type { BillingMeterRow, BillingSegmentRow } from './tables.ts'

/** Locks the meter until the transaction ends. A transaction that locks the account too locks the account first. */
export const lockMeter = (trx: Trx, subjectId: string): Promise<BillingMeterRow | undefined> =>
  forUpdate(
    trx,
    trx.selectFrom('billing_meters').selectAll().where('subject_id', '=', subjectId),
  ).executeTakeFirst()

export async function upsertMeter(trx: Trx, row: BillingMeterRow): Promise<void> {
  const { subject_id: _subjectId, ...changes } = row
  await trx
    .insertInto('billing_meters')
    .values(row)
    .onConflict((conflict) => conflict.column('subject_id').doUpdateSet(changes))
    .execute()
}

export async function deleteMeter(trx: Trx, subjectId: string): Promise<void> {
  await trx.deleteFrom('billing_meters').where('subject_id', '=', subjectId).execute()
}

export const listMeters = (db: Db | Trx, workspaceId: string): Promise<BillingMeterRow[]> =>
  db
    .selectFrom('billing_meters')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('subject_id')
    .execute()

/** No-op for an interval that is stored. */
export async function insertSegment(trx: Trx, row: BillingSegmentRow): Promise<void> {
  await trx
    .insertInto('billing_segments')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** In the order of the subjects and of time. */
export const listSegments = (db: Db | Trx, workspaceId: string): Promise<BillingSegmentRow[]> =>
  db
    .selectFrom('billing_segments')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('subject_id')
    .orderBy('since')
    .execute()

/** Deletes the segments of a subject, and returns them in the order of time. */
export async function takeSegments(trx: Trx, subjectId: string): Promise<BillingSegmentRow[]> {
  const rows = await trx
    .deleteFrom('billing_segments')
    .where('subject_id', '=', subjectId)
    .returningAll()
    .execute()
  return rows.sort((a, b) => a.since - b.since)
}

/** The meters of all workspaces that have not ended. */
export const listOpenMeters = (db: Db): Promise<BillingMeterRow[]> =>
  db.selectFrom('billing_meters').selectAll().where('mode', '!=', 'ended').execute()
