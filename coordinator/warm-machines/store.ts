// Queries on the machines that wait for a box.
import type { Region } from '../../shared/tiers.ts'
import { isOnHost } from '../db/is-on-host.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'

export type WarmMachineRow = {
  /** The id of the box that will take the machine. */
  id: string
  region: Region
  /** The host that runs the machine (DataDirectory.host). null: a version that knew no hosts has left it. */
  host: string | null
  /** 0: the machine is being started or removed. */
  is_ready: 0 | 1
}

declare module '../db/schema.ts' {
  interface Tables {
    warm_machines: WarmMachineRow
  }
}

export const listWarmMachines = (db: Db, host: string): Promise<WarmMachineRow[]> =>
  db.selectFrom('warm_machines').selectAll().where(isOnHost('warm_machines', host)).orderBy('id').execute()

export async function insertWarmMachine(db: Db, row: WarmMachineRow): Promise<void> {
  await db.insertInto('warm_machines').values(row).execute()
}

/** Returns false when a box has taken the machine. */
export async function setReady(db: Db, id: string, isReady: 0 | 1): Promise<boolean> {
  const update = db.updateTable('warm_machines').set({ is_ready: isReady }).where('id', '=', id)
  return (await update.executeTakeFirstOrThrow()).numUpdatedRows > 0n
}

/** Machines that an earlier coordinator of the host has left are not ready. */
export async function setNoneReady(db: Db, host: string): Promise<void> {
  const update = db.updateTable('warm_machines').set({ is_ready: 0 })
  await update.where(isOnHost('warm_machines', host)).execute()
}

/** Deletes the row of a machine of the host that is ready, and returns its id. null: none is ready, or another transaction takes it. */
export async function takeWarmMachine(trx: Trx, region: Region, host: string): Promise<string | null> {
  const machines = trx.selectFrom('warm_machines').select('id').where('region', '=', region)
  const ready = machines.where('is_ready', '=', 1).where(isOnHost('warm_machines', host))
  const found = await ready.limit(1).executeTakeFirst()
  if (found === undefined) return null
  const deletion = trx.deleteFrom('warm_machines').where('id', '=', found.id).where('is_ready', '=', 1)
  return (await deletion.executeTakeFirstOrThrow()).numDeletedRows > 0n ? found.id : null
}

export async function deleteWarmMachine(db: Db, id: string): Promise<void> {
  await db.deleteFrom('warm_machines').where('id', '=', id).execute()
}
