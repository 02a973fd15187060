// Queries on the links that connect an AWS role.
import type { Db } from '../../db/open.ts'
import type { AwsConnectRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

/** Also a link that is spent or has expired, for a while. */
export const findRoleLink = (db: Db | Trx, id: string): Promise<AwsConnectRow | undefined> =>
  db.selectFrom('aws_connects').selectAll().where('id', '=', id).executeTakeFirst()

/** The link expires at once. */
export const spendRoleLink = (trx: Trx, id: string, now: number) =>
  trx.updateTable('aws_connects').set({ expires_at: now }).where('id', '=', id).execute()

/** Replaces the previous link of the workspace, which is not valid any more. */
export async function replaceRoleLink(trx: Trx, row: AwsConnectRow): Promise<void> {
  await trx.deleteFrom('aws_connects').where('workspace_id', '=', row.workspace_id).execute()
  await trx.insertInto('aws_connects').values(row).execute()
}

/** @returns false: the link is spent, expired or cancelled */
export async function deleteRoleLink(
  trx: Trx,
  { id, workspace_id: workspaceId }: Pick<AwsConnectRow, 'id' | 'workspace_id'>,
  now: number,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('aws_connects')
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Returns the number of deleted links, at most `limit`. */
export async function deleteRoleLinksExpiredBefore(trx: Trx, before: number, limit: number): Promise<number> {
  const expired = trx
    .selectFrom('aws_connects')
    .select('id')
    .where('expires_at', '<=', before)
    .orderBy('expires_at')
    .limit(limit)
  const { numDeletedRows } = await trx
    .deleteFrom('aws_connects')
    .where('id', 'in', expired)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
