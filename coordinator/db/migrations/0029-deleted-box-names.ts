// Finds the newest deleted box with a name.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const deletedBoxNames: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create index boxes_deleted_hostname on boxes (workspace_id, hostname, terminated_at, id) where terminated_at is not null`.execute(
      db,
    )
  },
}
