// Queries on the AWS roles of workspaces.
import type { Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import type { AwsRoleRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

/** Oldest first. */
export const listRoles = (db: Db | Trx, workspaceId: string): Promise<AwsRoleRow[]> =>
  db
    .selectFrom('aws_roles')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()

export const findRole = (db: Db | Trx, workspaceId: string, id: string): Promise<AwsRoleRow | undefined> =>
  db
    .selectFrom('aws_roles')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()

/** Whether any workspace has a role. */
export const hasRoles = async (db: Db): Promise<boolean> =>
  (await db.selectFrom('aws_roles').select('id').limit(1).executeTakeFirst()) !== undefined

export const insertRole = (trx: Trx, row: AwsRoleRow) => trx.insertInto('aws_roles').values(row).execute()

/** undefined: the role has been deleted. */
export const updateRole = (
  trx: Trx,
  id: string,
  changes: Updateable<AwsRoleRow>,
): Promise<AwsRoleRow | undefined> =>
  trx.updateTable('aws_roles').set(changes).where('id', '=', id).returningAll().executeTakeFirst()

export const deleteRole = (trx: Trx, id: string) => trx.deleteFrom('aws_roles').where('id', '=', id).execute()
