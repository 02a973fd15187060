// The machines that are started before a box needs them. A box that takes one has its id, and the row is deleted.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const warmMachines: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('warm_machines')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('region', 'text', (c) => c.notNull())
      .addColumn('is_ready', 'integer', (c) => c.notNull())
      .execute()
  },
}
