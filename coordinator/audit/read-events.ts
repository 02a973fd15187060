// Reads pages of the audit log by any combination of filters. Every page reads a bounded number of rows.
import type { AuditOrigin } from '../../shared/api/audit.ts'
import { type AuditKind, CLIENT_AUDIT_KINDS } from '../../shared/audit-kinds.ts'
import type { Db } from '../db/open.ts'
import type { AuditEventRow } from '../db/schema.ts'
import {
  type EventConditions,
  type EventRange,
  findFirstEventAt,
  findWindowEnd,
  type IndexedField,
  listEvents,
  listEventsOfKinds,
  listMatchingEvents,
} from './event-store.ts'

export type EventFilter = {
  workspaceId: string
  /** Inclusive. Milliseconds since the epoch, like `until`. */
  since?: number | undefined
  /** Exclusive. */
  until?: number | undefined
  kinds?: readonly AuditKind[] | undefined
  boxId?: string | undefined
  actorUserId?: string | undefined
  origin?: AuditOrigin | undefined
}

/** `nextBefore`: the events below this number follow; null: none. */
export type EventPage = { rows: AuditEventRow[]; nextBefore: number | null }

/** Reads the newest events below `before` (undefined: the newest of all). The time range is already resolved. */
export type ReadPage = (before: number | undefined, limit: number) => Promise<EventPage>

const EMPTY: EventPage = { rows: [], nextBefore: null }

/** Limits a filter with several conditions: the rows that one query examines, and the queries of one page. */
const WINDOW = { rows: 5_000, perPage: 5 }

/** @param window smaller in tests */
export async function createEventReader(db: Db, filter: EventFilter, window = WINDOW): Promise<ReadPage> {
  const { workspaceId, since, until } = filter
  const kinds = selectKinds(filter)
  const [from, end] = await Promise.all(
    [since, until].map((at) => (at === undefined ? undefined : findFirstEventAt(db, workspaceId, at))),
  )
  if (kinds?.length === 0 || (since !== undefined && from === undefined)) return async () => EMPTY
  const createRange = (before = Number.POSITIVE_INFINITY): EventRange => {
    const first = Math.min(before, end ?? Number.POSITIVE_INFINITY)
    return { workspaceId, from, before: Number.isFinite(first) ? first : undefined }
  }
  const { field, conditions } = chooseIndex({ ...filter, kinds })
  if (conditions !== null && field !== null)
    return (before, limit) =>
      readMatching(db, { range: createRange(before), field }, conditions, limit, window)
  return async (before, limit) => {
    const range = createRange(before)
    return toPage(
      field === null && kinds !== undefined
        ? await listEventsOfKinds(db, range, kinds, limit + 1)
        : await listEvents(db, range, field, limit + 1),
      limit,
    )
  }
}

const toPage = (rows: AuditEventRow[], limit: number): EventPage =>
  rows.length <= limit
    ? { rows, nextBefore: null }
    : { rows: rows.slice(0, limit), nextBefore: rows[limit - 1]?.no ?? null }

/** A kind has only one origin, so that a filter by kind and origin is a filter by kind. */
function selectKinds({ kinds, origin }: EventFilter): AuditKind[] | undefined {
  if (kinds === undefined) return undefined
  const clientKinds: readonly AuditKind[] = CLIENT_AUDIT_KINDS
  const selected = kinds.filter(
    (kind) => origin === undefined || clientKinds.includes(kind) === (origin === 'client'),
  )
  return [...new Set(selected)]
}

/**
 * The field whose index finds the events, and the conditions on the events that it finds; null: none. A list of kinds
 * without a field is merged from the ranges of each kind.
 */
function chooseIndex({ kinds, boxId, actorUserId, origin: anyOrigin }: EventFilter): {
  field: IndexedField | null
  conditions: EventConditions | null
} {
  const origin = kinds === undefined ? anyOrigin : undefined
  const hasConditions = kinds !== undefined || origin !== undefined
  if (boxId !== undefined)
    return {
      field: { column: 'box_id', value: boxId },
      conditions: hasConditions || actorUserId !== undefined ? { kinds, actorUserId, origin } : null,
    }
  if (actorUserId !== undefined)
    return {
      field: { column: 'actor_user_id', value: actorUserId },
      conditions: hasConditions ? { kinds, origin } : null,
    }
  const [kind, ...others] = kinds ?? []
  if (kind !== undefined)
    return { field: others.length === 0 ? { column: 'kind', value: kind } : null, conditions: null }
  return { field: origin === undefined ? null : { column: 'origin', value: origin }, conditions: null }
}

/** Examines the events of the field window by window, at most `perPage` of them, so that a page may have few events. */
async function readMatching(
  db: Db,
  { range, field }: { range: EventRange; field: IndexedField },
  conditions: EventConditions,
  limit: number,
  { rows: size, perPage }: typeof WINDOW,
): Promise<EventPage> {
  const rows: AuditEventRow[] = []
  let { before } = range
  for (let i = 0; i < perPage; i++) {
    const window = { range: { ...range, before }, field, size }
    rows.push(...(await listMatchingEvents(db, window, conditions, limit + 1 - rows.length)))
    if (rows.length > limit) return toPage(rows, limit)
    const end = await findWindowEnd(db, window)
    if (end === undefined) return { rows, nextBefore: null }
    before = end
  }
  return { rows, nextBefore: before ?? null }
}
