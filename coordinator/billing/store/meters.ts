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

export type MeteredSubject = { meter: BillingMeterRow; segments: BillingSegmentRow[] }

/**
 * The meters of the workspace, each with its segments in the order of time. One statement, so that a change between two reads does
 * not count an interval twice.
 */
export async function listSubjects(db: Db | Trx, workspaceId: string): Promise<MeteredSubject[]> {
  const rows = await db
    .selectFrom('billing_meters as meter')
    .leftJoin('billing_segments as segment', 'segment.subject_id', 'meter.subject_id')
    .selectAll('meter')
    .select([
      'segment.user_id as segment_user_id',
      'segment.mode as segment_mode',
      'segment.tier as segment_tier',
      'segment.megabytes as segment_megabytes',
      'segment.since as segment_since',
      'segment.until as segment_until',
    ])
    .where('meter.workspace_id', '=', workspaceId)
    .orderBy('meter.subject_id')
    .orderBy('segment.since')
    .execute()
  const subjects = new Map<string, MeteredSubject>()
  for (const row of rows) {
    const {
      segment_user_id,
      segment_mode,
      segment_tier,
      segment_megabytes,
      segment_since,
      segment_until,
      ...meter
    } = row
    const subject = subjects.get(meter.subject_id) ?? { meter, segments: [] }
    subjects.set(meter.subject_id, subject)
    if (segment_user_id === null || segment_mode === null || segment_tier === null) continue
    if (segment_megabytes === null || segment_since === null || segment_until === null) continue
    subject.segments.push({
      subject_id: meter.subject_id,
      workspace_id: meter.workspace_id,
      box_id: meter.box_id,
      user_id: segment_user_id,
      mode: segment_mode,
      tier: segment_tier,
      megabytes: segment_megabytes,
      since: segment_since,
      until: segment_until,
    })
  }
  return [...subjects.values()]
}

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
