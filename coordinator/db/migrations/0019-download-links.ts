// Links that download a file of a box once.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const downloadLinks: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('download_links')
      .addColumn('hash', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      // Not a reference: a key or a session may be deleted first.
      .addColumn('credential_id', 'text', (c) => c.notNull())
      .addColumn('path', 'text', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .execute()
    for (const [name, columns] of [
      ['download_links_by_box', ['box_id']],
      ['download_links_by_workspace', ['workspace_id', 'hash']],
      ['download_links_by_expiry', ['expires_at']],
    ] as const)
      await db.schema
        .createIndex(name)
        .on('download_links')
        .columns([...columns])
        .execute()
  },
}
