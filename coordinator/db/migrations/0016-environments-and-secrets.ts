// Environments with their versions and files, secrets with their grants, mounts and uses, and the workspaces' certificate
// authorities.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const environmentsAndSecrets: Migration = {
  async up(db: Kysely<unknown>) {
    await createEnvironments(db)
    await createSecrets(db)
    await extendBoxes(db)
  },
}

async function createEnvironments(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('environments')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('description', 'text')
    .addColumn('is_default', 'integer', (c) => c.notNull())
    .addColumn('latest_version_no', 'integer', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
  await sql`create unique index environments_by_name on environments (workspace_id, name) where deleted_at is null`.execute(
    db,
  )
  await sql`create unique index environments_default on environments (workspace_id) where is_default = 1`.execute(
    db,
  )
  await db.schema.createIndex('environments_by_workspace').on('environments').column('workspace_id').execute()
  await db.schema
    .createTable('environment_versions')
    .addColumn('environment_id', 'text', (c) => c.notNull().references('environments.id'))
    .addColumn('version_no', 'integer', (c) => c.notNull())
    .addColumn('workspace_id', 'text', (c) => c.notNull())
    .addColumn('config', 'text', (c) => c.notNull())
    .addColumn('created_by', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('environment_versions_pk', ['environment_id', 'version_no'])
    .execute()
  await db.schema
    .createIndex('environment_versions_by_workspace')
    .on('environment_versions')
    .column('workspace_id')
    .execute()
  await db.schema
    .createTable('environment_files')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('workspace_id', 'text', (c) => c.notNull())
    .addColumn('environment_id', 'text', (c) => c.notNull().references('environments.id'))
    .addColumn('size', 'integer', (c) => c.notNull())
    .addColumn('content', 'text', (c) => c.notNull())
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  for (const column of ['workspace_id', 'environment_id', 'key_id'])
    await db.schema
      .createIndex(`environment_files_by_${column}`)
      .on('environment_files')
      .column(column)
      .execute()
  await db.schema
    .createTable('box_repos')
    .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
    .addColumn('workspace_id', 'text', (c) => c.notNull())
    .addColumn('repo', 'text', (c) => c.notNull())
    .addColumn('path', 'text', (c) => c.notNull())
    .addColumn('ref', 'text')
    .addColumn('secret', 'text')
    .addColumn('state', 'text', (c) => c.notNull())
    .addColumn('commit_id', 'text')
    .addColumn('error', 'text')
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('box_repos_pk', ['box_id', 'repo'])
    .execute()
  await db.schema.createIndex('box_repos_by_workspace').on('box_repos').column('workspace_id').execute()
  await sql`create index box_repos_unfinished on box_repos (box_id) where state in ('pending', 'cloning')`.execute(
    db,
  )
}

async function createSecrets(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('secrets')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('description', 'text')
    .addColumn('hosts', 'text', (c) => c.notNull())
    .addColumn('placeholder', 'text', (c) => c.notNull().unique())
    .addColumn('value', 'text', (c) => c.notNull())
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('created_by', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .addColumn('last_rotated_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('secrets_by_name')
    .on('secrets')
    .columns(['workspace_id', 'name'])
    .unique()
    .execute()
  await db.schema.createIndex('secrets_by_key_id').on('secrets').column('key_id').execute()
  await db.schema
    .createTable('secret_grants')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('workspace_id', 'text', (c) => c.notNull())
    .addColumn('secret_id', 'text', (c) => c.notNull().references('secrets.id'))
    // Without a reference: a grant outlives its box or member, because a secret without grants belongs to the workspace.
    .addColumn('box_id', 'text')
    .addColumn('hostname', 'text')
    .addColumn('user_id', 'text')
    .addColumn('email', 'text')
    .addColumn('created_by', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema
    .createTable('secret_mounts')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('workspace_id', 'text', (c) => c.notNull())
    .addColumn('secret_id', 'text', (c) => c.notNull().references('secrets.id'))
    .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
    .addColumn('env_name', 'text', (c) => c.notNull())
    .addColumn('created_by', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema
    .createIndex('secret_mounts_by_name')
    .on('secret_mounts')
    .columns(['box_id', 'env_name'])
    .unique()
    .execute()
  await db.schema
    .createTable('secret_uses')
    .addColumn('secret_id', 'text', (c) => c.notNull().references('secrets.id'))
    .addColumn('workspace_id', 'text', (c) => c.notNull())
    .addColumn('box_id', 'text', (c) => c.notNull())
    .addColumn('host', 'text', (c) => c.notNull())
    .addColumn('first_at', 'bigint', (c) => c.notNull())
    .addColumn('last_at', 'bigint', (c) => c.notNull())
    .addColumn('count', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('secret_uses_pk', ['secret_id', 'box_id', 'host'])
    .execute()
  await db.schema
    .createIndex('secret_uses_newest')
    .on('secret_uses')
    .columns(['secret_id', 'last_at'])
    .execute()
  for (const table of ['secret_grants', 'secret_mounts', 'secret_uses'])
    for (const column of ['workspace_id', 'secret_id', 'box_id'])
      await db.schema.createIndex(`${table}_by_${column}`).on(table).column(column).execute()
  await db.schema.createIndex('secret_grants_by_user_id').on('secret_grants').column('user_id').execute()
  await db.schema
    .createTable('workspace_authorities')
    .addColumn('workspace_id', 'text', (c) => c.primaryKey().references('workspaces.id'))
    .addColumn('certificate', 'text', (c) => c.notNull())
    .addColumn('private_key', 'text', (c) => c.notNull())
    .addColumn('key_id', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
}

async function extendBoxes(db: Kysely<unknown>): Promise<void> {
  for (const column of ['environment_vars', 'mount_vars', 'stale_files'])
    await db.schema
      .alterTable('boxes')
      .addColumn(column, 'text', (c) => c.notNull().defaultTo('[]'))
      .execute()
  await db.schema.alterTable('boxes').addColumn('applied_version_no', 'integer').execute()
  await db.schema.createIndex('boxes_by_environment').on('boxes').column('environment_id').execute()
  await db.schema.alterTable('snapshots').addColumn('environment_id', 'text').execute()
  await db.schema.alterTable('snapshots').addColumn('environment_version_no', 'integer').execute()
  await db.schema
    .alterTable('snapshots')
    .addColumn('mounts', 'text', (c) => c.notNull().defaultTo('[]'))
    .execute()
  await db.schema.createIndex('snapshots_by_environment').on('snapshots').column('environment_id').execute()
}
