// Shared ports of boxes.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const portShares: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('port_shares')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      .addColumn('port', 'integer', (c) => c.notNull())
      .addColumn('slug', 'text', (c) => c.notNull().unique())
      .addColumn('access', 'text', (c) => c.notNull())
      .addColumn('secret_hash', 'text')
      .addColumn('rewrites_host', 'integer', (c) => c.notNull())
      .addColumn('created_by', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint')
      .addColumn('ended_at', 'bigint')
      .addColumn('open_count', 'bigint', (c) => c.notNull().defaultTo(0))
      .addColumn('last_opened_at', 'bigint')
      .execute()
    await sql`create unique index port_shares_by_port on port_shares (box_id, port) where ended_at is null`.execute(
      db,
    )
    for (const [name, columns] of [
      ['port_shares_of_workspace', 'workspace_id, created_at, id'],
      ['port_shares_of_box', 'box_id, created_at, id'],
      // Only links that need no membership expire: this index has no others with a time.
      ['port_shares_by_expiry', 'workspace_id, expires_at'],
      ['port_shares_expiring', 'expires_at'],
    ] as const)
      await sql`create index ${sql.ref(name)} on port_shares (${sql.raw(columns)}) where ended_at is null`.execute(
        db,
      )
    // Also for the deletion of a workspace or a box.
    for (const column of ['ended_at', 'workspace_id', 'box_id'])
      await db.schema.createIndex(`port_shares_by_${column}`).on('port_shares').column(column).execute()
  },
}
