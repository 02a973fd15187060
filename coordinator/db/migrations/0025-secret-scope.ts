// Whether a secret is limited to its grants. Until now it was, as long as it had any.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const secretScope: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('secrets')
      .addColumn('scope', 'text', (c) => c.notNull().defaultTo('workspace'))
      .execute()
    await sql`update secrets set scope = 'granted' where id in (select secret_id from secret_grants)`.execute(
      db,
    )
  },
}
