// Queries on the codes that are sent by email.
import type { Db } from '../../db/open.ts'
import type { SignInCodeRow } from '../../db/schema.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'

export const insertCode = (trx: Trx, row: SignInCodeRow) =>
  trx.insertInto('sign_in_codes').values(row).execute()

export const findCode = (db: Db, id: string): Promise<SignInCodeRow | undefined> =>
  db.selectFrom('sign_in_codes').selectAll().where('id', '=', id).executeTakeFirst()

export const lockCode = (trx: Trx, id: string): Promise<SignInCodeRow | undefined> =>
  forUpdate(trx, trx.selectFrom('sign_in_codes').selectAll().where('id', '=', id)).executeTakeFirst()

/** The codes of an email address that were created after the instant, oldest first. */
export const listCodes = (
  trx: Trx,
  email: string,
  after: number,
): Promise<Pick<SignInCodeRow, 'key_id' | 'user_id' | 'created_at'>[]> =>
  trx
    .selectFrom('sign_in_codes')
    .select(['key_id', 'user_id', 'created_at'])
    .where('email', '=', email)
    .where('created_at', '>', after)
    .orderBy('created_at')
    .execute()

export const updateCode = (
  trx: Trx,
  id: string,
  values: Partial<Pick<SignInCodeRow, 'attempts' | 'used_at'>>,
) => trx.updateTable('sign_in_codes').set(values).where('id', '=', id).execute()

export const findLastCodeOfKey = (db: Db | Trx, keyId: string): Promise<SignInCodeRow | undefined> =>
  db
    .selectFrom('sign_in_codes')
    .selectAll()
    .where('key_id', '=', keyId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()

/** Returns the number of deleted codes. `keyCodes`: those of keys, else the others. */
export async function deleteCodes(
  trx: Trx,
  { createdBefore, keyCodes, limit }: { createdBefore: number; keyCodes: boolean; limit: number },
): Promise<number> {
  const rows = await trx
    .selectFrom('sign_in_codes')
    .select('id')
    .where('created_at', '<=', createdBefore)
    .where('key_id', keyCodes ? 'is not' : 'is', null)
    .orderBy('created_at')
    .limit(limit)
    .execute()
  for (const { id } of rows) await trx.deleteFrom('sign_in_codes').where('id', '=', id).execute()
  return rows.length
}

/** Deletes the codes of a workspace: those of its keys and users, and those of people who are members of no other workspace. */
export async function deleteCodesOfWorkspace(trx: Trx, workspaceId: string): Promise<void> {
  const usersOf = trx.selectFrom('users').where('workspace_id', '=', workspaceId)
  const keys = trx.selectFrom('api_keys').select('id').where('workspace_id', '=', workspaceId)
  await trx.deleteFrom('sign_in_codes').where('key_id', 'in', keys).execute()
  await trx.deleteFrom('sign_in_codes').where('user_id', 'in', usersOf.select('id')).execute()
  await trx
    .deleteFrom('sign_in_codes')
    .where('email', 'in', usersOf.select('email').$castTo<{ email: string }>())
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('users')
            .select('users.id')
            .whereRef('users.email', '=', 'sign_in_codes.email')
            .where('users.workspace_id', '!=', workspaceId)
            .where('users.removed_at', 'is', null),
        ),
      ),
    )
    .execute()
}
