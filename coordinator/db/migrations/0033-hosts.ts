// The host whose disk has the files. The first start of a coordinator writes its host into the rows that exist.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const hosts: Migration = {
  async up(db: Kysely<unknown>) {
    for (const table of ['boxes', 'snapshots', 'warm_machines', 'replicas'])
      await db.schema.alterTable(table).addColumn('host', 'text').execute()
  },
}
