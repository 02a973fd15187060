// Locks the row of a box. Every resource that changes a box or its jobs locks the box first.
import { prepareTrxQuery } from './prepared-queries.ts'
import type { BoxRow } from './schema.ts'
import { forUpdate, type Trx } from './transaction.ts'

const selectAndLock = prepareTrxQuery<BoxRow>((trx) =>
  forUpdate(trx, trx.selectFrom('boxes').selectAll().where('id', '=', '')),
)

/** Reads the box and locks its row until the transaction ends. The lock serialises changes to the box's states and job. */
export const lockBox = async (trx: Trx, boxId: string): Promise<BoxRow | undefined> =>
  (await selectAndLock(trx, [boxId]))[0]
