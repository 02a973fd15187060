// The labels of boxes, and those that boxes from a snapshot get.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const labels: Migration = {
  async up(db: Kysely<unknown>) {
    for (const table of ['boxes', 'snapshots'])
      await db.schema
        .alterTable(table)
        .addColumn('labels', 'text', (c) => c.notNull().defaultTo('{}'))
        .execute()
  },
}
