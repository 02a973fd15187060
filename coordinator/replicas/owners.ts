// The owner of a row, as the transactions of other rooms compare it.
import type { Trx } from '../db/transaction.ts'
import { isReplicaAlive } from './store.ts'

/** Whether a coordinator other than `own` owns the row with this `lease_owner`. */
export const hasOtherOwner = async (trx: Trx, leaseOwner: string | null, own: string): Promise<boolean> =>
  leaseOwner !== null && leaseOwner !== own && (await isReplicaAlive(trx, leaseOwner))
