// Tables of box metrics and process snapshots, and what the agent reports about the machine and its listening ports.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { dialectTraits } from '../dialects.ts'

export const boxMetrics: Migration = {
  async up(db: Kysely<unknown>) {
    const bytes = sql.raw(dialectTraits(db).bytesType)
    await db.schema.alterTable('boxes').addColumn('listening_ports', 'text').execute()
    await db.schema.alterTable('boxes').addColumn('machine', 'text').execute()

    await db.schema
      .createTable('metric_chunks')
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      .addColumn('res', 'integer', (c) => c.notNull())
      .addColumn('start', 'bigint', (c) => c.notNull())
      .addColumn('pending_rollup', 'integer', (c) => c.notNull())
      .addColumn('data', bytes, (c) => c.notNull())
      .addPrimaryKeyConstraint('metric_chunks_pk', ['box_id', 'res', 'start'])
      .execute()
    await sql`create index metric_chunks_pending on metric_chunks (box_id) where pending_rollup = 1`.execute(
      db,
    )
    // All rows match. The condition keeps Postgres from using this index, instead of the key, for the chunks of one box.
    await sql`create index metric_chunks_by_age on metric_chunks (res, start) where pending_rollup < 2`.execute(
      db,
    )

    await db.schema
      .createTable('process_chunks')
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      .addColumn('start', 'bigint', (c) => c.notNull())
      .addColumn('data', bytes, (c) => c.notNull())
      .addPrimaryKeyConstraint('process_chunks_pk', ['box_id', 'start'])
      .execute()
    await db.schema.createIndex('process_chunks_by_age').on('process_chunks').columns(['start']).execute()
  },
}
