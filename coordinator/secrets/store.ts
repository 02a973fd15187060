// Queries on secrets.
import type { Updateable } from 'kysely'
import type { Db } from '../db/open.ts'
import type { SecretRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'
import { whereBefore } from '../db/where-before.ts'
import type { PageCursor } from '../http/page-cursor.ts'

/** What responses have of a secret: not the value. */
export type SecretFields = Omit<SecretRow, 'value' | 'key_id'>
export type ListedSecretRow = SecretFields & { mount_count: number }

const FIELDS = [
  'id',
  'workspace_id',
  'name',
  'description',
  'hosts',
  'locations',
  'placeholder',
  'scope',
  'created_by',
  'created_at',
  'updated_at',
  'last_rotated_at',
] as const

/** false: the workspace has a secret of this name. */
export async function insertSecret(trx: Trx, row: SecretRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('secrets')
    .values(row)
    .onConflict((conflict) => conflict.columns(['workspace_id', 'name']).doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export const findSecret = (
  db: Db | Trx,
  workspaceId: string,
  id: string,
): Promise<SecretFields | undefined> =>
  db
    .selectFrom('secrets')
    .select(FIELDS)
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()

/** Grants and mounts of a secret change under this lock, which is acquired after those of boxes and of the workspace. */
export const lockSecret = (trx: Trx, workspaceId: string, id: string): Promise<SecretFields | undefined> =>
  forUpdate(
    trx,
    trx.selectFrom('secrets').select(FIELDS).where('id', '=', id).where('workspace_id', '=', workspaceId),
  ).executeTakeFirst()

/** Locks the secrets with one of the ids or names, in the order of their ids. */
export const lockSecrets = (
  trx: Trx,
  workspaceId: string,
  { ids, names }: { ids: readonly string[]; names: readonly string[] },
): Promise<SecretFields[]> =>
  forUpdate(
    trx,
    trx
      .selectFrom('secrets')
      .select(FIELDS)
      .where('workspace_id', '=', workspaceId)
      .where((eb) => eb.or([eb('id', 'in', [...ids, '']), eb('name', 'in', [...names, ''])]))
      .orderBy('id'),
  ).execute()

export const updateSecret = (trx: Trx, id: string, changes: Updateable<SecretRow>) =>
  trx.updateTable('secrets').set(changes).where('id', '=', id).execute()

/** The rows that refer to the secret must have been deleted. */
export const deleteSecret = (trx: Trx, id: string) => trx.deleteFrom('secrets').where('id', '=', id).execute()

export async function countSecrets(trx: Trx, workspaceId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('secrets')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

const selectListed = (db: Db | Trx) =>
  db
    .selectFrom('secrets')
    .select(FIELDS)
    .select((eb) =>
      eb
        .selectFrom('secret_mounts')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .whereRef('secret_mounts.secret_id', '=', 'secrets.id')
        .as('mount_count'),
    )

/** A page of the secrets of a workspace, newest first. */
export async function listSecrets(
  db: Db,
  workspaceId: string,
  { before, limit }: { before: PageCursor | undefined; limit: number },
): Promise<ListedSecretRow[]> {
  const query = selectListed(db).where('workspace_id', '=', workspaceId)
  const rows = await (before === undefined ? query : query.where(whereBefore('created_at', before)))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ ...row, mount_count: Number(row.mount_count) }))
}

export async function getListedSecret(trx: Trx, id: string): Promise<ListedSecretRow> {
  const row = await selectListed(trx).where('id', '=', id).executeTakeFirstOrThrow()
  return { ...row, mount_count: Number(row.mount_count) }
}
