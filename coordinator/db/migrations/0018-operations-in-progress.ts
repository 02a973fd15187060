// Each feed lists the operations of its workspace that have not finished. Finished ones stay for 30 days.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const operationsInProgress: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create index operations_in_progress on operations (workspace_id) where completed_at is null`.execute(
      db,
    )
  },
}
