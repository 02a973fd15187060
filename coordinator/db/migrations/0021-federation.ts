// Cloud federation: the signing keys of the issuer, the AWS roles of workspaces, and the links that connect a role.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const federation: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('federation_keys')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('public_jwk', 'text', (c) => c.notNull())
      .addColumn('private_key', 'text', (c) => c.notNull())
      .addColumn('key_id', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('activated_at', 'bigint')
      .addColumn('retired_at', 'bigint')
      .execute()
    await db.schema
      .createTable('aws_roles')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('role_arn', 'text', (c) => c.notNull())
      .addColumn('profile', 'text', (c) => c.notNull())
      .addColumn('verified_at', 'bigint')
      .addColumn('verified_arn', 'text')
      .addColumn('verify_error', 'text')
      .addColumn('created_by', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .execute()
    for (const column of ['role_arn', 'profile'])
      await db.schema
        .createIndex(`aws_roles_by_${column}`)
        .on('aws_roles')
        .columns(['workspace_id', column])
        .unique()
        .execute()
    await db.schema
      .createTable('aws_connects')
      .addColumn('id', 'text', (c) => c.primaryKey())
      // A new link replaces the previous one.
      .addColumn('workspace_id', 'text', (c) => c.notNull().unique().references('workspaces.id'))
      .addColumn('token_hash', 'text', (c) => c.notNull())
      .addColumn('profile', 'text')
      .addColumn('user_id', 'text', (c) => c.notNull())
      // Not a reference: a key or a session may be deleted first.
      .addColumn('credential_type', 'text', (c) => c.notNull())
      .addColumn('credential_id', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema.createIndex('aws_connects_by_expiry').on('aws_connects').column('expires_at').execute()
  },
}
