// Queries that read pages of the audit log, newest first. Each reads a bounded number of index entries.
import type { SelectQueryBuilder } from 'kysely'
import type { AuditOrigin } from '../../shared/api/audit.ts'
import type { AuditKind } from '../../shared/audit-kinds.ts'
import type { Db } from '../db/open.ts'
import type { AuditEventRow, Tables } from '../db/schema.ts'

/** The events of a workspace with `from` <= no < `before`. */
export type EventRange = { workspaceId: string; from?: number | undefined; before?: number | undefined }

/** One field that has an index with `no`. */
export type IndexedField =
  | { column: 'kind'; value: AuditKind }
  | { column: 'box_id' | 'actor_user_id'; value: string }
  | { column: 'origin'; value: AuditOrigin }

/** Conditions on the rows that an index has found. */
export type EventConditions = {
  kinds?: readonly AuditKind[] | undefined
  actorUserId?: string | undefined
  origin?: AuditOrigin | undefined
}

type Query<O> = SelectQueryBuilder<Tables, 'audit_log', O>

/**
 * The events of the range, and of the field when it is not null, newest first. A field is compared together with `no`: with
 * an equality, Postgres may walk through the events of all values instead of the field's index.
 */
function selectRange<O>(query: Query<O>, range: EventRange, field: IndexedField | null): Query<O> {
  const { workspaceId, from = 0, before = Number.MAX_SAFE_INTEGER } = range
  const selected = query.where('workspace_id', '=', workspaceId)
  if (field === null) return selected.where('no', '>=', from).where('no', '<', before).orderBy('no', 'desc')
  const { column, value } = field
  return selected
    .where(({ eb, refTuple, tuple }) => eb(refTuple(column, 'no'), '>=', tuple(value, from)))
    .where(({ eb, refTuple, tuple }) => eb(refTuple(column, 'no'), '<', tuple(value, before)))
    .orderBy(column, 'desc')
    .orderBy('no', 'desc')
}

export const listEvents = (
  db: Db,
  range: EventRange,
  field: IndexedField | null,
  limit: number,
): Promise<AuditEventRow[]> =>
  selectRange(db.selectFrom('audit_log').selectAll(), range, field).limit(limit).execute()

export const listEventsOfKinds = (
  db: Db,
  range: EventRange,
  kinds: readonly AuditKind[],
  limit: number,
): Promise<AuditEventRow[]> =>
  listEventsOfFields(
    db,
    range,
    kinds.map((value) => ({ column: 'kind', value })),
    limit,
  )

export const listEventsOfBoxes = (
  db: Db,
  range: EventRange,
  boxIds: readonly string[],
  limit: number,
): Promise<AuditEventRow[]> =>
  listEventsOfFields(
    db,
    range,
    boxIds.map((value) => ({ column: 'box_id', value })),
    limit,
  )

/**
 * Merges the index ranges of the fields. A second query reads the found events: as a join, Postgres may choose to read all
 * events of the workspace.
 */
async function listEventsOfFields(
  db: Db,
  range: EventRange,
  fields: readonly IndexedField[],
  limit: number,
): Promise<AuditEventRow[]> {
  const [first, ...others] = fields.map((field) => {
    const ofField = selectRange(db.selectFrom('audit_log').select('no'), range, field)
    return db.selectFrom(ofField.limit(limit).as('of_field')).select('of_field.no')
  })
  if (first === undefined) return []
  const ofFields = others.reduce((union, ofField) => union.unionAll(ofField), first)
  const found = await db
    .selectFrom(ofFields.as('of_fields'))
    .select('of_fields.no')
    .orderBy('of_fields.no', 'desc')
    .limit(limit)
    .execute()
  if (found.length === 0) return []
  return db
    .selectFrom('audit_log')
    .selectAll()
    .where('workspace_id', '=', range.workspaceId)
    .where(
      'no',
      'in',
      found.map(({ no }) => no),
    )
    .orderBy('no', 'desc')
    .execute()
}

/** The events of the newest `size` events of the field that match the conditions. */
export async function listMatchingEvents(
  db: Db,
  window: { range: EventRange; field: IndexedField; size: number },
  { kinds, actorUserId, origin }: EventConditions,
  limit: number,
): Promise<AuditEventRow[]> {
  const { range, field, size } = window
  let query = db
    // The limit keeps the database from choosing the index of a condition, which may have many more events.
    .selectFrom((eb) =>
      selectRange(eb.selectFrom('audit_log').selectAll(), range, field).limit(size).as('newest'),
    )
    .selectAll()
  if (kinds !== undefined) query = query.where('kind', 'in', kinds)
  if (actorUserId !== undefined) query = query.where('actor_user_id', '=', actorUserId)
  if (origin !== undefined) query = query.where('origin', '=', origin)
  return query.orderBy('no', 'desc').limit(limit).execute()
}

/** The number of the oldest of the newest `size` events of the field; undefined: it has fewer events. */
export async function findWindowEnd(
  db: Db,
  { range, field, size }: { range: EventRange; field: IndexedField; size: number },
): Promise<number | undefined> {
  const query = selectRange(db.selectFrom('audit_log').select('no'), range, field)
  const row = await query
    .limit(1)
    .offset(size - 1)
    .executeTakeFirst()
  return row?.no
}

/** The first event at or after the instant, in milliseconds since the epoch. The times of events do not decrease. */
export async function findFirstEventAt(db: Db, workspaceId: string, at: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('audit_log')
    .select('no')
    .where('workspace_id', '=', workspaceId)
    .where('at', '>=', at)
    .orderBy('at')
    .orderBy('no')
    .limit(1)
    .executeTakeFirst()
  return row?.no
}
