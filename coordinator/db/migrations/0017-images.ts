// The provider of each box and snapshot, the image of those whose provider has images, and why an image could not be used.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const images: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('box_events').addColumn('error_code', 'text').execute()
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
