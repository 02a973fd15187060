// Reads and writes the state events of boxes.
import type { Selectable } from 'kysely'
import type { ObservedState } from '../../../shared/api/boxes.ts'
import type { ErrorCode } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { Db } from '../../db/open.ts'
import type { BoxEventRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

/** Newest first. */
export const listBoxEvents = (db: Db | Trx, boxId: string): Promise<Selectable<BoxEventRow>[]> =>
  db
    .selectFrom('box_events')
    .selectAll()
    .where('box_id', '=', boxId)
    .orderBy('seq', 'desc')
    .limit(LIMITS.boxEvents)
    .execute()

/** Whether the box has entered the state since this time because of a user or a key. */
export async function hasEventOfUser(
  trx: Trx,
  boxId: string,
  state: ObservedState,
  since: number,
): Promise<boolean> {
  const event = await trx
    .selectFrom('box_events')
    .select('seq')
    .where('box_id', '=', boxId)
    .where('to_state', '=', state)
    .where('at', '>=', since)
    .where('actor', '!=', 'system')
    .limit(1)
    .executeTakeFirst()
  return event !== undefined
}

export type StateChange = {
  from: ObservedState | null
  to: ObservedState
  reason: string
  errorCode?: ErrorCode | null
  /** user:<id>, key:<id> or system. */
  actor: string
  /** Milliseconds since the epoch. */
  at: number
}

/** Inserts the state event and deletes the box's oldest events beyond LIMITS.boxEvents. */
export async function recordStateChange(trx: Trx, boxId: string, change: StateChange): Promise<void> {
  const { from, to, reason, errorCode = null, actor, at } = change
  await trx
    .insertInto('box_events')
    .values({ box_id: boxId, from_state: from, to_state: to, reason, error_code: errorCode, actor, at })
    .execute()
  const oldestKeptSeq = trx
    .selectFrom('box_events')
    .select('seq')
    .where('box_id', '=', boxId)
    .orderBy('seq', 'desc')
    .offset(LIMITS.boxEvents - 1)
    .limit(1)
  await trx.deleteFrom('box_events').where('box_id', '=', boxId).where('seq', '<', oldestKeptSeq).execute()
}

/** Returns the number of deleted rows. */
export async function deleteSomeEventsOfBox(trx: Trx, id: string, limit: number): Promise<number> {
  const oldest = trx
    .selectFrom('box_events')
    .select('seq')
    .where('box_id', '=', id)
    .orderBy('seq')
    .limit(limit)
  const { numDeletedRows } = await trx.deleteFrom('box_events').where('seq', 'in', oldest).executeTakeFirst()
  return Number(numDeletedRows)
}

export const deleteEventsOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('box_events').where('box_id', '=', boxId).execute()
