// Queries on the mounts of secrets.
import { sql } from 'kysely'
import type { Db } from '../db/open.ts'
import { prepareQuery } from '../db/prepared-queries.ts'
import type { BoxRow, SecretMountRow, SecretRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export type MountWithSecret = Pick<SecretMountRow, 'id' | 'secret_id' | 'env_name'> &
  Pick<SecretRow, 'name' | 'placeholder' | 'hosts' | 'scope'>
export type MountWithBox = SecretMountRow & Pick<BoxRow, 'owner_user_id'>

const selectWithSecret = (db: Db | Trx) =>
  db
    .selectFrom('secret_mounts')
    .innerJoin('secrets', 'secrets.id', 'secret_mounts.secret_id')
    .select(['secret_mounts.id as id', 'secret_id', 'env_name', 'name', 'placeholder', 'hosts', 'scope'])

/** The mounts of a box, oldest first. */
export const listMountsOfBox = (db: Db | Trx, boxId: string): Promise<MountWithSecret[]> =>
  selectWithSecret(db)
    .where('box_id', '=', boxId)
    .orderBy('secret_mounts.created_at')
    .orderBy('secret_mounts.id')
    .execute()

export const findMount = (trx: Trx, boxId: string, id: string): Promise<MountWithSecret | undefined> =>
  selectWithSecret(trx).where('box_id', '=', boxId).where('secret_mounts.id', '=', id).executeTakeFirst()

/** The mounts of a secret, in the order of their boxes. */
export const listMountsOfSecret = (db: Db | Trx, secretId: string): Promise<MountWithBox[]> =>
  db
    .selectFrom('secret_mounts')
    .innerJoin('boxes', 'boxes.id', 'secret_mounts.box_id')
    .selectAll('secret_mounts')
    .select('owner_user_id')
    .where('secret_id', '=', secretId)
    .orderBy('box_id')
    .execute()

/** The boxes of a user that have secrets, in the order of their ids. */
export async function listMountedBoxIdsOfUser(trx: Trx, userId: string): Promise<string[]> {
  const rows = await trx
    .selectFrom('secret_mounts')
    .innerJoin('boxes', 'boxes.id', 'secret_mounts.box_id')
    .select('box_id')
    .distinct()
    .where('owner_user_id', '=', userId)
    .orderBy('box_id')
    .execute()
  return rows.map(({ box_id }) => box_id)
}

/** false: the box has a secret under this variable. */
export async function insertMount(trx: Trx, row: SecretMountRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('secret_mounts')
    .values(row)
    .onConflict((conflict) => conflict.columns(['box_id', 'env_name']).doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export const deleteMounts = (trx: Trx, ids: readonly string[]) =>
  trx.deleteFrom('secret_mounts').where('id', 'in', ids).execute()

export const deleteMountsOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('secret_mounts').where('box_id', '=', boxId).execute()

/** A mounted secret, as the broker needs it. */
export type BrokeredRow = Pick<SecretRow, 'id' | 'name' | 'placeholder' | 'value' | 'hosts' | 'locations'> &
  Pick<BoxRow, 'workspace_id' | 'hostname'>

/**
 * The secrets of a box that is not restricted and not deleted, as far as their scope or a grant covers the box. Runs for each request
 * with a secret. The condition repeats the rule of rules.ts, so that a secret is never used without a grant.
 */
export const prepareBrokeredQuery = (db: Db) =>
  prepareQuery<BrokeredRow, [boxId: string]>(db, (database) =>
    database
      .selectFrom('secret_mounts')
      .innerJoin('boxes', 'boxes.id', 'secret_mounts.box_id')
      .innerJoin('secrets', 'secrets.id', 'secret_mounts.secret_id')
      .select(['secrets.id as id', 'name', 'placeholder', 'secrets.value as value', 'hosts', 'locations'])
      .select(['boxes.workspace_id as workspace_id', 'boxes.hostname as hostname'])
      .where('secret_mounts.box_id', '=', '')
      .where('boxes.restricted', '=', sql.lit(0))
      .where('boxes.desired_state', '!=', sql.lit('terminated'))
      .where(({ eb, or, exists, selectFrom }) =>
        or([
          eb('secrets.scope', '=', sql.lit('workspace')),
          exists(
            selectFrom('secret_grants')
              .select('secret_grants.id')
              .whereRef('secret_grants.secret_id', '=', 'secrets.id')
              .whereRef('secret_grants.box_id', '=', 'boxes.id'),
          ),
          exists(
            selectFrom('secret_grants')
              .innerJoin('users', 'users.id', 'secret_grants.user_id')
              .select('secret_grants.id')
              .whereRef('secret_grants.secret_id', '=', 'secrets.id')
              .whereRef('secret_grants.user_id', '=', 'boxes.owner_user_id')
              .where('users.removed_at', 'is', null),
          ),
        ]),
      ),
  )
