// Indexes whose size does not grow with terminated boxes, and one for the status of commands.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const liveBoxesAndCommandStatus: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create index boxes_live on boxes (workspace_id, created_at, id) where terminated_at is null`.execute(
      db,
    )
    await sql`create index boxes_terminated on boxes (terminated_at) where terminated_at is not null`.execute(
      db,
    )
    await sql`create index commands_by_status on commands (box_id, status, requested_at, id) where deleted_at is null`.execute(
      db,
    )
  },
}
