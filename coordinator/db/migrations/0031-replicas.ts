// The coordinators that use the database. What a coordinator owns names it, and is free when that coordinator is not alive.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const replicas: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('replicas')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('version', 'text', (c) => c.notNull())
      .addColumn('name', 'text')
      .addColumn('url', 'text')
      .addColumn('settings', 'text')
      .addColumn('lease_until', 'bigint')
      .addColumn('started_at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema
      .createTable('tunnels')
      .addColumn('box_id', 'text', (c) => c.primaryKey())
      .addColumn('lease_owner', 'text')
      .addColumn('generation', 'bigint', (c) => c.notNull())
      .addColumn('instance_id', 'text', (c) => c.notNull())
      .addColumn('agent', 'text', (c) => c.notNull())
      .execute()
    for (const table of ['jobs', 'snapshot_jobs'])
      await db.schema.alterTable(table).dropColumn('lease_until').execute()
    for (const table of ['idempotency_keys', 'schedules', 'audit_sinks'])
      await db.schema.alterTable(table).addColumn('lease_owner', 'text').execute()
  },
}
