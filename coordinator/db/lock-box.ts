// Locks the row of a box. Every resource that changes a box or its jobs locks the box first.
import type { BoxRow } from './schema.ts'
import { forUpdate, type Trx } from './transaction.ts'

/** Reads the box and locks its row until the transaction ends. The lock serialises changes to the box's states and job. */
export const lockBox = (trx: Trx, boxId: string): Promise<BoxRow | undefined> =>
  forUpdate(trx, trx.selectFrom('boxes').selectAll().where('id', '=', boxId)).executeTakeFirst()
