// Where the value of a secret is used in a request. Earlier secrets were used in headers only.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const secretLocations: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('secrets')
      .addColumn('locations', 'text', (column) => column.notNull().defaultTo('["header"]'))
      .execute()
  },
}
