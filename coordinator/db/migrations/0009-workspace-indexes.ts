// Indexes for deleting a workspace: also the database itself searches for rows that refer to a deleted row.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const workspaceIndexes: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.createIndex('workspaces_by_age').on('workspaces').columns(['created_at', 'id']).execute()
    for (const [name, table, column] of [
      ['tickets_by_user', 'tickets', 'user_id'],
      ['tickets_by_workspace', 'tickets', 'workspace_id'],
      ['sessions_by_workspace', 'sessions', 'workspace_id'],
      ['operations_by_workspace', 'operations', 'workspace_id'],
      ['snapshots_by_workspace', 'snapshots', 'workspace_id'],
      ['snapshots_by_owner', 'snapshots', 'owner_user_id'],
      ['boxes_by_owner', 'boxes', 'owner_user_id'],
      ['sign_in_codes_by_user', 'sign_in_codes', 'user_id'],
    ] as const)
      await db.schema.createIndex(name).on(table).column(column).execute()
    // The other indexes on the commands of a box have no deleted records.
    await sql`create index commands_with_deleted on commands (box_id)`.execute(db)
  },
}
