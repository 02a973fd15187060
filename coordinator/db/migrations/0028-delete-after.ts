// When a box is deleted, and after how many minutes that was requested.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const deleteAfter: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('boxes').addColumn('delete_at', 'bigint').execute()
    await db.schema.alterTable('boxes').addColumn('delete_after_min', 'integer').execute()
  },
}
