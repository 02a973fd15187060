// Tables of snapshots, schedules and moves, and the columns of suspended, moved and restored boxes.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const lifeOfABox: Migration = {
  async up(db: Kysely<unknown>) {
    for (const column of ['suspended_as', 'archive_id', 'leftovers', 'source_snapshot_id'])
      await db.schema.alterTable('boxes').addColumn(column, 'text').execute()
    // Earlier versions only stopped machines.
    await sql`update boxes set suspended_as = 'stopped' where observed_state = 'suspended'`.execute(db)
    await sql`create index boxes_by_source on boxes (source_snapshot_id) where source_snapshot_id is not null`.execute(
      db,
    )
    await db.schema.alterTable('boxes').addColumn('archive_bytes', 'bigint').execute()
    await sql`create index boxes_frozen on boxes (state_since) where suspended_as = 'frozen'`.execute(db)
    await db.schema.alterTable('jobs').addColumn('params', 'text').execute()

    await db.schema
      .createTable('snapshots')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('owner_user_id', 'text', (c) => c.notNull().references('users.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('description', 'text')
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('transient', 'integer', (c) => c.notNull())
      .addColumn('template_name', 'text')
      .addColumn('expires_at', 'bigint')
      // The box may have been deleted.
      .addColumn('box_id', 'text', (c) => c.notNull())
      .addColumn('source_hostname', 'text', (c) => c.notNull())
      .addColumn('tier', 'text', (c) => c.notNull())
      .addColumn('region', 'text', (c) => c.notNull())
      .addColumn('restricted', 'integer', (c) => c.notNull())
      .addColumn('env_vars', 'text', (c) => c.notNull())
      .addColumn('content_bytes', 'bigint')
      .addColumn('stored_bytes', 'bigint')
      .addColumn('paused_ms', 'bigint')
      .addColumn('error', 'text')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addColumn('deleted_at', 'bigint')
      .execute()
    await sql`create index snapshots_by_age on snapshots (workspace_id, created_at, id) where deleted_at is null`.execute(
      db,
    )
    await sql`create index snapshots_by_deletion on snapshots (deleted_at) where deleted_at is not null`.execute(
      db,
    )
    await db.schema
      .createIndex('snapshots_by_box')
      .on('snapshots')
      .columns(['box_id', 'kind', 'created_at'])
      .execute()
    await sql`create unique index snapshots_by_template on snapshots (workspace_id, template_name) where template_name is not null`.execute(
      db,
    )

    await db.schema
      .createTable('snapshot_jobs')
      .addColumn('snapshot_id', 'text', (c) => c.primaryKey().references('snapshots.id'))
      .addColumn('op', 'text', (c) => c.notNull())
      .addColumn('attempt', 'integer', (c) => c.notNull())
      .addColumn('last_error', 'text')
      .addColumn('next_retry_at', 'bigint')
      .addColumn('lease_owner', 'text')
      .addColumn('lease_until', 'bigint')
      .addColumn('actor', 'text', (c) => c.notNull())
      .addColumn('operation_id', 'text')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .execute()

    await db.schema
      .createTable('schedules')
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('target_id', 'text', (c) => c.notNull())
      .addColumn('due_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('schedules_pk', ['target_id', 'kind'])
      .execute()
    await db.schema.createIndex('schedules_by_due_time').on('schedules').columns(['due_at']).execute()
    // Earlier versions stored the deadlines and the idle times of boxes, and did not enforce them. A deadline in the past
    // would suspend a box that is in use.
    await sql`update boxes set pause_at = null where pause_at <= ${Date.now()}`.execute(db)
    await sql`insert into schedules (kind, target_id, due_at) select 'pause', id, pause_at from boxes
      where pause_at is not null and observed_state not in ('provision_failed', 'terminating', 'terminated')`.execute(
      db,
    )
    await sql`insert into schedules (kind, target_id, due_at) select 'auto_pause', id, 0 from boxes
      where auto_pause_min is not null and observed_state = 'running'`.execute(db)
    await sql`insert into schedules (kind, target_id, due_at) select 'deep_sleep', id, 0 from boxes
      where observed_state = 'suspended'`.execute(db)

    await db.schema
      .createTable('box_moves')
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      .addColumn('workspace_id', 'text', (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('box_moves_pk', ['box_id', 'at'])
      .execute()
    await db.schema.createIndex('box_moves_by_age').on('box_moves').columns(['workspace_id', 'at']).execute()
  },
}
