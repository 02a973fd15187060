// The provider of each box and snapshot, and the image of those whose provider has images.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const images: Migration = {
  async up(db: Kysely<unknown>) {
    for (const table of ['boxes', 'snapshots']) {
      for (const column of ['image', 'image_digest'])
        await db.schema.alterTable(table).addColumn(column, 'text').execute()
      await db.schema
        .alterTable(table)
        .addColumn('provider', 'text', (c) => c.notNull().defaultTo('local'))
        .execute()
    }
  },
}
