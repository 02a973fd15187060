// Tables of workspaces, users, API keys, boxes with their events and jobs, operations, and idempotency keys.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { dialectTraits } from '../dialects.ts'

export const initial: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('workspaces')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('zero_data_retention', 'integer', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .execute()

    await db.schema
      .createTable('users')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('email', 'text')
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('role', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .execute()

    await db.schema
      .createTable('api_keys')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('user_id', 'text', (c) => c.references('users.id'))
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('expires_at', 'bigint')
      .addColumn('revoked_at', 'bigint')
      .addColumn('box_ids', 'text')
      .addColumn('access', 'text')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .execute()

    await db.schema
      .createTable('boxes')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('owner_user_id', 'text', (c) => c.notNull().references('users.id'))
      .addColumn('hostname', 'text', (c) => c.notNull())
      .addColumn('tier', 'text', (c) => c.notNull())
      .addColumn('region', 'text', (c) => c.notNull())
      .addColumn('desired_region', 'text')
      .addColumn('desired_state', 'text', (c) => c.notNull())
      .addColumn('observed_state', 'text', (c) => c.notNull())
      .addColumn('state_since', 'bigint', (c) => c.notNull())
      .addColumn('auto_pause_min', 'integer')
      .addColumn('pause_at', 'bigint')
      .addColumn('auto_snapshot_hours', 'integer')
      .addColumn('auto_snapshot_keep', 'integer', (c) => c.notNull())
      .addColumn('quiet_hours_exempt', 'integer', (c) => c.notNull())
      .addColumn('restricted', 'integer', (c) => c.notNull())
      .addColumn('environment_id', 'text')
      .addColumn('environment_version_no', 'integer')
      .addColumn('env_vars', 'text', (c) => c.notNull())
      .addColumn('isolation', 'text')
      .addColumn('agent_token_hash', 'text')
      .addColumn('report_epoch', 'text')
      .addColumn('report_seq', 'bigint', (c) => c.notNull())
      .addColumn('agent_version', 'text')
      .addColumn('boot_id', 'text')
      .addColumn('pauses_survived', 'integer', (c) => c.notNull())
      .addColumn('vitals', 'text')
      .addColumn('last_heartbeat_at', 'bigint')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addColumn('terminated_at', 'bigint')
      .execute()
    // A name stays taken until its box is terminated (spec §7.1: "duplicate live box").
    await sql`create unique index boxes_live_hostname on boxes (workspace_id, hostname) where terminated_at is null`.execute(
      db,
    )
    await db.schema
      .createIndex('boxes_by_age')
      .on('boxes')
      .columns(['workspace_id', 'created_at', 'id'])
      .execute()

    await db.schema
      .createTable('box_events')
      .$call((table) =>
        dialectTraits(db).identityColumns
          ? table.addColumn('seq', 'bigint', (c) => c.primaryKey().generatedAlwaysAsIdentity())
          : table.addColumn('seq', 'integer', (c) => c.primaryKey().autoIncrement()),
      )
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      .addColumn('from_state', 'text')
      .addColumn('to_state', 'text', (c) => c.notNull())
      .addColumn('reason', 'text', (c) => c.notNull())
      .addColumn('actor', 'text', (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema.createIndex('box_events_by_box').on('box_events').columns(['box_id', 'seq']).execute()

    await db.schema
      .createTable('operations')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('target_id', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('requested_at', 'bigint', (c) => c.notNull())
      .addColumn('completed_at', 'bigint')
      .addColumn('error', 'text')
      .execute()
    await db.schema.createIndex('operations_by_target').on('operations').columns(['target_id']).execute()
    await db.schema.createIndex('operations_by_end').on('operations').columns(['completed_at']).execute()

    await db.schema
      .createTable('jobs')
      .addColumn('box_id', 'text', (c) => c.primaryKey().references('boxes.id'))
      .addColumn('op', 'text', (c) => c.notNull())
      .addColumn('step', 'text', (c) => c.notNull())
      .addColumn('attempt', 'integer', (c) => c.notNull())
      .addColumn('last_error', 'text')
      .addColumn('next_retry_at', 'bigint')
      .addColumn('lease_owner', 'text')
      .addColumn('lease_until', 'bigint')
      .addColumn('actor', 'text', (c) => c.notNull())
      .addColumn('reason', 'text')
      .addColumn('operation_id', 'text')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .execute()

    await db.schema
      .createTable('idempotency_keys')
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('route', 'text', (c) => c.notNull())
      .addColumn('key', 'text', (c) => c.notNull())
      .addColumn('fingerprint', 'text', (c) => c.notNull())
      .addColumn('status', 'integer')
      .addColumn('body', 'text')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('idempotency_keys_pk', ['workspace_id', 'route', 'key'])
      .execute()
    await db.schema
      .createIndex('idempotency_keys_by_age')
      .on('idempotency_keys')
      .columns(['created_at'])
      .execute()
  },
}
