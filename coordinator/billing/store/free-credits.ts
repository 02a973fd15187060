// Queries on the persons who have had free credit. The rows are kept when a workspace is deleted.
import type { Trx } from '../../db/transaction.ts'
import type { FreeCreditRow } from './tables.ts'

/** @returns false when the person has had free credit */
export async function claimFreeCredit(trx: Trx, row: FreeCreditRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await trx
    .insertInto('free_credits')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows > 0n
}
