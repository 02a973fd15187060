// Ends the tickets of a user who is removed.
import type { Trx } from '../../db/transaction.ts'
import { deleteTicketsOfUser } from './store.ts'

export const endTicketsOfUser = (trx: Trx, userId: string): Promise<unknown> =>
  deleteTicketsOfUser(trx, userId)
