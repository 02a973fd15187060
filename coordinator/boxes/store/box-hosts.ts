// Queries on the hosts of boxes and snapshots.
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import { listAliveHosts } from '../../replicas/hosts.ts'

const selectElsewhere = (db: Db, ownHost: string) =>
  db
    .selectFrom('boxes')
    .where('terminated_at', 'is', null)
    .where('host', 'is not', null)
    .where('host', '!=', ownHost)

export async function hasBoxesElsewhere(db: Db, ownHost: string): Promise<boolean> {
  const row = await selectElsewhere(db, ownHost).select('id').limit(1).executeTakeFirst()
  return row !== undefined
}

/** The boxes that should run on hosts without a coordinator. */
export async function listRunningBoxIdsElsewhere(db: Db, ownHost: string): Promise<string[]> {
  const rows = await selectElsewhere(db, ownHost)
    .select(['id', 'host'])
    .where('observed_state', '=', 'running')
    .where('desired_state', '=', 'running')
    .execute()
  const alive = await listAliveHosts(db)
  return rows.flatMap(({ id, host }) => (host !== null && alive.has(host) ? [] : [id]))
}

export type HostUse = { host: string; boxes: number; snapshots: number }

/** The hosts that have boxes or snapshots, and no coordinator. */
export async function listDownHosts(db: Db, ownHost: string): Promise<HostUse[]> {
  const boxes = await selectElsewhere(db, ownHost)
    .select(({ fn }) => ['host', fn.countAll().as('count')])
    .groupBy('host')
    .execute()
  const snapshots = await db
    .selectFrom('snapshots')
    .select(({ fn }) => ['host', fn.countAll().as('count')])
    .where('deleted_at', 'is', null)
    .where('host', 'is not', null)
    .where('host', '!=', ownHost)
    .groupBy('host')
    .execute()
  const hosts = new Set([...boxes, ...snapshots].flatMap(({ host }) => host ?? []))
  if (hosts.size > 0) for (const host of await listAliveHosts(db)) hosts.delete(host)
  const countOf = (rows: typeof boxes, host: string) =>
    Number(rows.find((row) => row.host === host)?.count ?? 0)
  return [...hosts].map((host) => ({
    host,
    boxes: countOf(boxes, host),
    snapshots: countOf(snapshots, host),
  }))
}

/** Whether a version without hosts has left boxes or snapshots. */
export async function hasRowsWithoutHost(db: Db): Promise<boolean> {
  const boxes = db.selectFrom('boxes').select('id').where('host', 'is', null).where('kind', '=', 'managed')
  if ((await boxes.where('terminated_at', 'is', null).limit(1).executeTakeFirst()) !== undefined) return true
  const snapshots = db.selectFrom('snapshots').select('id').where('host', 'is', null)
  return (await snapshots.where('deleted_at', 'is', null).limit(1).executeTakeFirst()) !== undefined
}

/**
 * Gives the host to the boxes and snapshots of earlier versions, which knew no hosts: their only coordinator has the files.
 * Enrolled machines have no host.
 */
export const adoptBoxes = (db: Db, host: string): Promise<void> =>
  transaction(db, async (trx) => {
    await trx
      .updateTable('boxes')
      .set({ host })
      .where('host', 'is', null)
      .where('kind', '=', 'managed')
      .where('terminated_at', 'is', null)
      .execute()
    await trx
      .updateTable('snapshots')
      .set({ host })
      .where('host', 'is', null)
      .where('deleted_at', 'is', null)
      .execute()
  })
