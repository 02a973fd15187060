// The rollout of new agent builds in each workspace, and the builds that failed on a box.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const agentRollouts: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('agent_rollouts')
      .addColumn('workspace_id', 'text', (c) => c.primaryKey().references('workspaces.id'))
      .addColumn('share', 'integer', (c) => c.notNull())
      .addColumn('paused', 'integer', (c) => c.notNull())
      .addColumn('updated_by', 'text')
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema.alterTable('boxes').addColumn('agent_failure', 'text').execute()
    await db.schema
      .alterTable('boxes')
      .addColumn('agent_failure_dismissed', 'integer', (c) => c.notNull().defaultTo(0))
      .execute()
  },
}
