// Queries on shared ports.
import type { Updateable } from 'kysely'
import type { Db } from '../db/open.ts'
import { prepareQuery } from '../db/prepared-queries.ts'
import type { BoxRow, PortShareRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'
import { type Visibility, whereVisible } from '../db/where-visible.ts'
import type { PageCursor } from '../http/page-cursor.ts'

/** The columns of a share beside those of its box, and the policies of the workspace. No column of boxes has these names. */
export type ShareWithBox = BoxRow &
  Pick<
    PortShareRow,
    'port' | 'slug' | 'access' | 'secret_hash' | 'rewrites_host' | 'expires_at' | 'ended_at'
  > & { share_id: string; policy: string | null }

const selectWithBox = (db: Db) =>
  db
    .selectFrom('port_shares')
    .innerJoin('boxes', 'boxes.id', 'port_shares.box_id')
    .leftJoin('policies', 'policies.workspace_id', 'port_shares.workspace_id')
    .selectAll('boxes')
    .select(['port_shares.id as share_id', 'port', 'slug', 'access', 'secret_hash', 'rewrites_host'])
    .select(['port_shares.expires_at as expires_at', 'ended_at', 'policies.policy as policy'])

/** The first query runs for every request to a link. */
export const prepareShareQueries = (db: Db) => ({
  bySlug: prepareQuery<ShareWithBox, [slug: string]>(db, (database) =>
    selectWithBox(database).where('slug', '=', ''),
  ),
  byId: prepareQuery<ShareWithBox, [id: string]>(db, (database) =>
    selectWithBox(database).where('port_shares.id', '=', ''),
  ),
})

/** The share and the owner of its box, without a lock. */
export const findShare = (
  db: Db | Trx,
  id: string,
): Promise<(PortShareRow & Pick<BoxRow, 'owner_user_id'>) | undefined> =>
  db
    .selectFrom('port_shares')
    .innerJoin('boxes', 'boxes.id', 'port_shares.box_id')
    .selectAll('port_shares')
    .select('boxes.owner_user_id')
    .where('port_shares.id', '=', id)
    .executeTakeFirst()

/** The share of the port, which may have expired. The caller has locked the box, so that it stays the only one. */
export const lockShareOfPort = (trx: Trx, boxId: string, port: number): Promise<PortShareRow | undefined> =>
  forUpdate(
    trx,
    trx
      .selectFrom('port_shares')
      .selectAll()
      .where('box_id', '=', boxId)
      .where('port', '=', port)
      .where('ended_at', 'is', null),
  ).executeTakeFirst()

export const insertShare = (trx: Trx, row: PortShareRow) =>
  trx.insertInto('port_shares').values(row).execute()

export const updateShare = (trx: Trx, id: string, changes: Updateable<PortShareRow>): Promise<PortShareRow> =>
  trx.updateTable('port_shares').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow()

/** Returns undefined when the share has ended. */
export const endShare = (trx: Trx, id: string, now: number): Promise<PortShareRow | undefined> =>
  trx
    .updateTable('port_shares')
    .set({ ended_at: now })
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .returningAll()
    .executeTakeFirst()

/** Returns the ids of the shares. */
export async function endSharesOfBox(trx: Trx, boxId: string, now: number): Promise<string[]> {
  const rows = await trx
    .updateTable('port_shares')
    .set({ ended_at: now })
    .where('box_id', '=', boxId)
    .where('ended_at', 'is', null)
    .returning('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Ends the links of a box that need no membership. Returns their ids. */
export async function endOpenLinksOfBox(trx: Trx, boxId: string, now: number): Promise<string[]> {
  const rows = await trx
    .updateTable('port_shares')
    .set({ ended_at: now })
    .where('box_id', '=', boxId)
    .where('ended_at', 'is', null)
    .where('access', '!=', 'members')
    .returning('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** The live links that need no membership: only these expire. */
export async function listLinkIds(db: Db | Trx, workspaceId: string, now: number): Promise<string[]> {
  const rows = await db
    .selectFrom('port_shares')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('expires_at', '>', now)
    .where('ended_at', 'is', null)
    .execute()
  return rows.map(({ id }) => id)
}

export type ListedShareRow = PortShareRow & Pick<BoxRow, 'hostname'>
/** The position after which a page begins, in its order, and its length. */
export type SharePage = { after: PageCursor | undefined; limit: number; order: 'oldest' | 'newest' }

/** A page of the live shares of a box, or of all boxes that an actor sees. */
export function listLiveShares(
  db: Db,
  scope: { boxId: string } | { visibility: Visibility },
  now: number,
  { after, limit, order }: SharePage,
): Promise<ListedShareRow[]> {
  const query = db
    .selectFrom('port_shares')
    .innerJoin('boxes', 'boxes.id', 'port_shares.box_id')
    .selectAll('port_shares')
    .select('boxes.hostname')
    .where('boxes.desired_state', '!=', 'terminated')
    .where('ended_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
  const inScope =
    'boxId' in scope
      ? query.where('port_shares.box_id', '=', scope.boxId)
      : query
          .where('port_shares.workspace_id', '=', scope.visibility.workspaceId)
          .where(whereVisible(scope.visibility, 'boxes.id'))
  const [direction, beyond, from] =
    order === 'oldest' ? (['asc', '>', '>='] as const) : (['desc', '<', '<='] as const)
  const page =
    after === undefined
      ? inScope
      : inScope
          .where('port_shares.created_at', from, after.at)
          .where((eb) =>
            eb.or([eb('port_shares.created_at', beyond, after.at), eb('port_shares.id', beyond, after.id)]),
          )
  return page
    .orderBy('port_shares.created_at', direction)
    .orderBy('port_shares.id', direction)
    .limit(limit)
    .execute()
}

export type ShareOpenings = { count: number; lastAt: number }

export const addOpenings = (trx: Trx, id: string, { count, lastAt }: ShareOpenings) =>
  trx
    .updateTable('port_shares')
    .set((eb) => ({ open_count: eb('open_count', '+', count), last_opened_at: lastAt }))
    .where('id', '=', id)
    .execute()

/** Ends links that have expired. Returns their number, at most `limit`. */
export async function endExpiredShares(trx: Trx, now: number, limit: number): Promise<number> {
  const rows = await trx
    .selectFrom('port_shares')
    .select('id')
    .where('ended_at', 'is', null)
    .where('expires_at', '<=', now)
    .limit(limit)
    .execute()
  if (rows.length === 0) return 0
  await trx
    .updateTable('port_shares')
    .set((eb) => ({ ended_at: eb.ref('expires_at') }))
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .where('ended_at', 'is', null)
    .execute()
  return rows.length
}

/** Returns the number of deleted shares, at most `limit`. */
export async function deleteSharesEndedBefore(trx: Trx, before: number, limit: number): Promise<number> {
  const rows = await trx
    .selectFrom('port_shares')
    .select('id')
    .where('ended_at', '<', before)
    .orderBy('ended_at')
    .limit(limit)
    .execute()
  if (rows.length === 0) return 0
  const ids = rows.map(({ id }) => id)
  await trx.deleteFrom('port_shares').where('id', 'in', ids).execute()
  return ids.length
}

export const deleteSharesOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('port_shares').where('box_id', '=', boxId).execute()
