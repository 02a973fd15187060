// The images that the coordinator has downloaded into engines, and when boxes or environments last used them.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const imageDownloads: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('image_downloads')
      .addColumn('region', 'text', (c) => c.notNull())
      .addColumn('image', 'text', (c) => c.notNull())
      .addColumn('size_bytes', 'bigint', (c) => c.notNull())
      .addColumn('used_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('image_downloads_key', ['region', 'image'])
      .execute()
  },
}
