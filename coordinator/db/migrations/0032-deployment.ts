// The values that all coordinators of the database share. They were files of the data directory before.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const deployment: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('deployment_values')
      .addColumn('name', 'text', (c) => c.primaryKey())
      .addColumn('value', 'text', (c) => c.notNull())
      // The master key that has encrypted the value; null: the value is no secret.
      .addColumn('key_id', 'text')
      .execute()
  },
}
