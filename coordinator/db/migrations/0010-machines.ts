// The kind of a box, tokens that enroll machines, and the machines whose boxes have been deleted.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const machines: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('boxes')
      .addColumn('kind', 'text', (c) => c.notNull().defaultTo('managed'))
      .execute()
    await db.schema.alterTable('boxes').addColumn('agent_lineage', 'text').execute()

    await db.schema
      .createTable('enrollments')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('user_id', 'text', (c) => c.references('users.id'))
      // This column is not a reference: a session may end before the token is used.
      .addColumn('credential_id', 'text', (c) => c.notNull())
      .addColumn('credential_kind', 'text', (c) => c.notNull())
      .addColumn('name', 'text')
      .addColumn('region', 'text', (c) => c.notNull())
      .addColumn('restricted', 'integer', (c) => c.notNull())
      .addColumn('env_vars', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .addColumn('revoked_at', 'bigint')
      .addColumn('used_at', 'bigint')
      .addColumn('agent_token_hash', 'text')
      // This column is not a reference: the box may be deleted first.
      .addColumn('box_id', 'text')
      .execute()
    await db.schema
      .createIndex('enrollments_by_workspace')
      .on('enrollments')
      .columns(['workspace_id', 'created_at'])
      .execute()
    await db.schema.createIndex('enrollments_by_user').on('enrollments').column('user_id').execute()
    await db.schema.createIndex('enrollments_by_expiry').on('enrollments').column('expires_at').execute()
    await sql`create index enrollments_open on enrollments (workspace_id, created_at) where used_at is null and revoked_at is null`.execute(
      db,
    )

    await db.schema
      .createTable('deleted_machines')
      // This column is not a reference: the row outlives the box and its workspace.
      .addColumn('box_id', 'text', (c) => c.primaryKey())
      .addColumn('agent_token_hash', 'text', (c) => c.notNull())
      .addColumn('deleted_at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema
      .createIndex('deleted_machines_by_age')
      .on('deleted_machines')
      .column('deleted_at')
      .execute()
  },
}
