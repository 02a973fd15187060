// The workspace that a user has used last, codes that confirm a new email address, and an index of unverified keys.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const signIn: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('users').addColumn('last_active_at', 'bigint').execute()
    await db.schema.alterTable('sign_in_codes').addColumn('user_id', 'text').execute()
    await db.schema.createIndex('sign_in_codes_by_key').on('sign_in_codes').columns(['key_id']).execute()
    await sql`create index api_keys_unverified on api_keys (unverified_since) where unverified_since is not null`.execute(
      db,
    )
  },
}
