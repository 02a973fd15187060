// The hosts of boxes and snapshots: which coordinator may work on the files of a row.
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import { isHostAlive } from './store.ts'

export { listAliveHosts } from './store.ts'

/** A row with files. */
export type Hosted = { host: string | null }

/** Whether only the coordinators of another host may work on the files. */
export const isElsewhere = (row: Hosted, ownHost: string): boolean =>
  row.host !== null && row.host !== ownHost

/** Whether no coordinator that is alive may work on the files. Without a query where `ownHost` has them. */
export const isUnavailable = async (db: Db | Trx, row: Hosted, ownHost: string): Promise<boolean> =>
  row.host !== null && row.host !== ownHost && !(await isHostAlive(db, row.host))
