// Ends the sessions of a user who is removed.
import type { Trx } from '../../db/transaction.ts'
import { deleteSessionsOfUser } from './store.ts'

export const endSessionsOfUser = (trx: Trx, userId: string): Promise<unknown> =>
  deleteSessionsOfUser(trx, userId)
