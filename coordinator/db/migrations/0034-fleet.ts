// What each coordinator reports of itself to the others of the database: the builds of the agent that it offers, and its tunnels.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const fleet: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('replicas').addColumn('agent_builds', 'text').execute()
    await db.schema.alterTable('replicas').addColumn('tunnels', 'bigint').execute()
  },
}
