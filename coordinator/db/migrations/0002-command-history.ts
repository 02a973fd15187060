// Tables of the command history, its output, the key that signs claims tokens, and the audit log.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { dialectTraits } from '../dialects.ts'

export const commandHistory: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('commands')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('box_id', 'text', (c) => c.notNull().references('boxes.id'))
      .addColumn('mode', 'text', (c) => c.notNull())
      .addColumn('source', 'text', (c) => c.notNull())
      .addColumn('command', 'text')
      .addColumn('command_truncated', 'integer', (c) => c.notNull())
      .addColumn('cwd', 'text')
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('exit_code', 'integer')
      .addColumn('signal', 'text')
      .addColumn('pid', 'integer')
      .addColumn('requested_at', 'bigint', (c) => c.notNull())
      .addColumn('started_at', 'bigint', (c) => c.notNull())
      .addColumn('finished_at', 'bigint')
      .addColumn('actor_kind', 'text', (c) => c.notNull())
      .addColumn('actor_user_id', 'text')
      .addColumn('actor_token_id', 'text')
      .addColumn('output_kept', 'integer', (c) => c.notNull())
      .addColumn('stdout_bytes', 'bigint', (c) => c.notNull())
      .addColumn('stdout_start', 'bigint', (c) => c.notNull())
      .addColumn('stderr_bytes', 'bigint', (c) => c.notNull())
      .addColumn('stderr_start', 'bigint', (c) => c.notNull())
      .addColumn('deleted_at', 'bigint')
      .execute()
    // Partial, so that reading a page of one box's history does not scan deleted records.
    await sql`create index commands_by_box on commands (box_id, requested_at, id) where deleted_at is null`.execute(
      db,
    )
    await sql`create index commands_running on commands (box_id) where status = 'running'`.execute(db)
    await db.schema.createIndex('commands_by_age').on('commands').columns(['requested_at']).execute()

    await db.schema
      .createTable('command_output')
      .addColumn('command_id', 'text', (c) => c.notNull().references('commands.id'))
      .addColumn('stream', 'text', (c) => c.notNull())
      .addColumn('start_offset', 'bigint', (c) => c.notNull())
      .addColumn('size', 'integer', (c) => c.notNull())
      .addColumn('data', sql.raw(dialectTraits(db).bytesType), (c) => c.notNull())
      .addPrimaryKeyConstraint('command_output_pk', ['command_id', 'stream', 'start_offset'])
      .execute()

    await db.schema
      .createTable('sealing_keys')
      .addColumn('name', 'text', (c) => c.primaryKey())
      .addColumn('key', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .execute()

    await db.schema
      .createTable('audit_events')
      .$call((table) =>
        dialectTraits(db).identityColumns
          ? table.addColumn('seq', 'bigint', (c) => c.primaryKey().generatedAlwaysAsIdentity())
          : table.addColumn('seq', 'integer', (c) => c.primaryKey().autoIncrement()),
      )
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('origin', 'text', (c) => c.notNull())
      .addColumn('actor_kind', 'text', (c) => c.notNull())
      .addColumn('actor_user_id', 'text')
      .addColumn('actor_token_id', 'text')
      .addColumn('box_id', 'text')
      .addColumn('detail', 'text', (c) => c.notNull())
      .execute()
    await db.schema
      .createIndex('audit_events_by_workspace')
      .on('audit_events')
      .columns(['workspace_id', 'seq'])
      .execute()
  },
}
