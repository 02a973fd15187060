// Queries on the certificate authorities of workspaces.
import type { Db } from '../db/open.ts'
import type { WorkspaceAuthorityRow } from '../db/schema.ts'

export const findAuthority = (db: Db, workspaceId: string): Promise<WorkspaceAuthorityRow | undefined> =>
  db
    .selectFrom('workspace_authorities')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()

/** Returns the stored authority: of two concurrent first uses, one stores its own. */
export async function insertAuthority(db: Db, row: WorkspaceAuthorityRow): Promise<WorkspaceAuthorityRow> {
  await db
    .insertInto('workspace_authorities')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return db
    .selectFrom('workspace_authorities')
    .selectAll()
    .where('workspace_id', '=', row.workspace_id)
    .executeTakeFirstOrThrow()
}
