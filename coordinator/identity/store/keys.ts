// Reads and writes rows of API keys. Of the other directories, only the purge of a workspace writes the table.
import { sql, type Updateable } from 'kysely'
import { LIMITS } from '../../../shared/limits.ts'
import { dialectTraits } from '../../db/dialects.ts'
import type { Db } from '../../db/open.ts'
import { prepareQuery } from '../../db/prepared-queries.ts'
import type { ApiKeyRow, UserRow } from '../../db/schema.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'
import { whereBefore } from '../../db/where-before.ts'
import type { PageCursor } from '../../http/page-cursor.ts'

export type KeyWithUser = ApiKeyRow & { role: UserRow['role'] | null; user_removed_at: number | null }

const selectKeyWithUser = (db: Db | Trx) =>
  db
    .selectFrom('api_keys')
    .leftJoin('users', 'users.id', 'api_keys.user_id')
    .selectAll('api_keys')
    .select(['users.role as role', 'users.removed_at as user_removed_at'])

/** Finds a key by its hash. Runs for every request. */
export const prepareKeyQuery = (db: Db) =>
  prepareQuery<KeyWithUser, [hash: string]>(db, (database) =>
    selectKeyWithUser(database).where('api_keys.hash', '=', ''),
  )

/** Finds a key by its id. Runs for every request of a viewer of a share. */
export const prepareKeyByIdQuery = (db: Db) =>
  prepareQuery<KeyWithUser, [id: string]>(db, (database) =>
    selectKeyWithUser(database).where('api_keys.id', '=', ''),
  )

export const findKeyWithUser = (trx: Trx, id: string): Promise<KeyWithUser | undefined> =>
  selectKeyWithUser(trx).where('api_keys.id', '=', id).executeTakeFirst()

export const insertKey = (trx: Trx, row: ApiKeyRow) => trx.insertInto('api_keys').values(row).execute()

export type KeyFilter = {
  workspaceId: string
  /** undefined: the keys of all users, and those with no user. */
  userId: string | undefined
  includeRevoked: boolean
  before: PageCursor | undefined
  limit: number | undefined
}

/** Newest first. */
export function listKeys(db: Db | Trx, filter: KeyFilter): Promise<ApiKeyRow[]> {
  let query = db.selectFrom('api_keys').selectAll().where('workspace_id', '=', filter.workspaceId)
  if (filter.userId !== undefined) query = query.where('user_id', '=', filter.userId)
  if (!filter.includeRevoked) query = query.where('revoked_at', 'is', null)
  if (filter.before) query = query.where(whereBefore('created_at', filter.before))
  if (filter.limit !== undefined) query = query.limit(filter.limit)
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

/** The keys of a user that are not revoked. `userId` null: the keys with no user. */
export async function countKeys(trx: Trx, workspaceId: string, userId: string | null): Promise<number> {
  const { count } = await trx
    .selectFrom('api_keys')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('user_id', userId === null ? 'is' : '=', userId)
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export const findKey = (db: Db | Trx, id: string): Promise<ApiKeyRow | undefined> =>
  db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst()

/** Locks the row until the transaction ends. */
export const lockKey = (trx: Trx, id: string): Promise<ApiKeyRow | undefined> =>
  forUpdate(trx, trx.selectFrom('api_keys').selectAll().where('id', '=', id)).executeTakeFirst()

export const updateKey = (trx: Trx, id: string, changes: Updateable<ApiKeyRow>): Promise<ApiKeyRow> =>
  trx.updateTable('api_keys').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow()

/** `at`: milliseconds since the epoch. */
export type KeyUse = { id: string; hash: string; at: number }

/** Locks the rows that no other transaction has locked. Returns their ids. */
export async function lockFreeKeys(trx: Trx, ids: readonly string[]): Promise<Set<string>> {
  const query = trx
    .selectFrom('api_keys')
    .select('id')
    .where('id', 'in', [...ids])
  const rows = await (dialectTraits(trx).locksRows ? query.forNoKeyUpdate().skipLocked() : query).execute()
  return new Set(rows.map(({ id }) => id))
}

const MACHINE_KEY_MS = LIMITS.machineKeyDays * 24 * 60 * 60_000

/** Skips a use of a key that was revoked, rotated or had expired before the use. */
export async function updateKeyUses(trx: Trx, uses: readonly KeyUse[]): Promise<void> {
  const values = uses.map(({ id, hash, at }) => sql`(${id}, ${hash}, cast(${at} as bigint))`)
  // SQLite and PostgreSQL both name the columns of a bare VALUES list column1, column2, column3.
  await sql`update api_keys
    set last_used_at = v.column3,
      expires_at = case
        when kind = 'machine' and expires_at < v.column3 + ${sql.lit(MACHINE_KEY_MS)}
        then v.column3 + ${sql.lit(MACHINE_KEY_MS)} else expires_at end
    from (values ${sql.join(values)}) as v
    where api_keys.id = v.column1 and hash = v.column2 and revoked_at is null
      and (expires_at is null or expires_at > v.column3)
      and (last_used_at is null or last_used_at < v.column3)`.execute(trx)
}

type UnverifiedKey = Pick<ApiKeyRow, 'id' | 'workspace_id' | 'user_id'>

/** The key while its email address is not confirmed. */
export const lockUnverifiedKey = (trx: Trx, id: string): Promise<UnverifiedKey | undefined> =>
  forUpdate(
    trx,
    trx
      .selectFrom('api_keys')
      .select(['id', 'workspace_id', 'user_id'])
      .where('id', '=', id)
      .where('unverified_since', 'is not', null),
  ).executeTakeFirst()

/** Locks the keys: without the lock, a key that is verified meanwhile would be deleted. */
export const lockUnverifiedKeys = (
  trx: Trx,
  { unverifiedBefore, limit }: { unverifiedBefore: number; limit: number },
): Promise<UnverifiedKey[]> =>
  forUpdate(
    trx,
    trx
      .selectFrom('api_keys')
      .select(['id', 'workspace_id', 'user_id'])
      .where('unverified_since', '<=', unverifiedBefore)
      .orderBy('unverified_since')
      .limit(limit),
  ).execute()

export const deleteKeys = (trx: Trx, workspaceId: string) =>
  trx.deleteFrom('api_keys').where('workspace_id', '=', workspaceId).execute()

export const revokeKeysOfUser = (trx: Trx, userId: string, now: number) =>
  trx
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .execute()
