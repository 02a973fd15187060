// The sessions of people at shares for members, and the codes that start them.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const shareViewers: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('share_viewers')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      // The next columns are not references: a share, a key or a session may be deleted first.
      .addColumn('share_id', 'text', (c) => c.notNull())
      .addColumn('credential_type', 'text', (c) => c.notNull())
      .addColumn('credential_id', 'text', (c) => c.notNull())
      .addColumn('user_id', 'text')
      .addColumn('code_hash', 'text', (c) => c.unique())
      .addColumn('token_hash', 'text', (c) => c.unique())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .execute()
    for (const [name, columns] of [
      ['share_viewers_by_share', ['share_id', 'user_id', 'created_at']],
      ['share_viewers_by_box', ['box_id']],
      ['share_viewers_by_workspace', ['workspace_id', 'id']],
      ['share_viewers_by_expiry', ['expires_at']],
    ] as const)
      await db.schema
        .createIndex(name)
        .on('share_viewers')
        .columns([...columns])
        .execute()
  },
}
