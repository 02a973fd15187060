// Whether a secret is limited to its grants: until now it was, as long as it had any. The deletions that a repeated request
// repeats, and the versions of Boxwood that have used the database.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const scopesDeletionsVersions: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('secrets')
      .addColumn('scope', 'text', (c) => c.notNull().defaultTo('workspace'))
      .execute()
    await sql`update secrets set scope = 'granted' where id in (select secret_id from secret_grants)`.execute(
      db,
    )
    await db.schema
      .createTable('deletions')
      .addColumn('workspace_id', 'text', (c) => c.notNull())
      .addColumn('resource_id', 'text', (c) => c.notNull())
      .addColumn('deleted_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('deletions_pk', ['workspace_id', 'resource_id'])
      .execute()
    await db.schema.createIndex('deletions_by_age').on('deletions').column('deleted_at').execute()
    await db.schema
      .createTable('program_versions')
      .addColumn('version', 'text', (c) => c.primaryKey())
      .addColumn('started_at', 'bigint', (c) => c.notNull())
      .execute()
  },
}
