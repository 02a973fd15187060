// Stores when each box last accepted a prompt.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const lastPrompts: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('last_prompts')
      .addColumn('box_id', 'text', (c) => c.primaryKey().references('boxes.id'))
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema
      .createIndex('last_prompts_by_workspace')
      .on('last_prompts')
      .column('workspace_id')
      .execute()
  },
}
