// Tables of sessions, sign-in codes, tickets, policies and the hash-chained audit log; names and last use of keys.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { START_HASH, sealAuditEvent } from '../../../shared/audit-chain.ts'

export const accessAndAudit: Migration = {
  async up(db: Kysely<unknown>) {
    for (const column of ['closing_at', 'purge_after'])
      await db.schema.alterTable('workspaces').addColumn(column, 'bigint').execute()
    for (const column of ['joined_at', 'removed_at'])
      await db.schema.alterTable('users').addColumn(column, 'bigint').execute()
    await sql`update users set joined_at = created_at, email = lower(email)`.execute(db)
    await sql`create unique index users_by_email on users (email, workspace_id) where removed_at is null`.execute(
      db,
    )
    await db.schema
      .createIndex('users_by_workspace')
      .on('users')
      .columns(['workspace_id', 'created_at'])
      .execute()
    for (const column of ['last_used_at', 'unverified_since'])
      await db.schema.alterTable('api_keys').addColumn(column, 'bigint').execute()
    // Earlier versions created only the keys of the owner.
    await db.schema
      .alterTable('api_keys')
      .addColumn('name', 'text', (c) => c.notNull().defaultTo('owner key'))
      .execute()
    await db.schema.alterTable('api_keys').addColumn('ending', 'text').execute()
    await db.schema
      .createIndex('api_keys_by_workspace')
      .on('api_keys')
      .columns(['workspace_id', 'created_at'])
      .execute()
    await db.schema
      .createIndex('api_keys_by_user')
      .on('api_keys')
      .columns(['user_id', 'created_at'])
      .execute()
    await sql`create index api_keys_live on api_keys (workspace_id, created_at) where revoked_at is null`.execute(
      db,
    )

    await db.schema
      .createTable('sessions')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
      .addColumn('user_agent', 'text')
      .addColumn('address', 'text')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('last_used_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema.createIndex('sessions_by_user').on('sessions').columns(['user_id']).execute()
    await db.schema.createIndex('sessions_by_expiry').on('sessions').columns(['expires_at']).execute()

    await db.schema
      .createTable('sign_in_codes')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('email', 'text', (c) => c.notNull())
      // Set for a code that verifies a key instead of signing in.
      .addColumn('key_id', 'text')
      .addColumn('code_hash', 'text', (c) => c.notNull())
      .addColumn('attempts', 'integer', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .addColumn('used_at', 'bigint')
      .execute()
    await db.schema
      .createIndex('sign_in_codes_by_email')
      .on('sign_in_codes')
      .columns(['email', 'created_at'])
      .execute()
    await db.schema.createIndex('sign_in_codes_by_age').on('sign_in_codes').columns(['created_at']).execute()

    await db.schema
      .createTable('tickets')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
      // This column is not a reference: the session may end before the ticket is deleted.
      .addColumn('session_id', 'text', (c) => c.notNull())
      .addColumn('box_id', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .execute()
    await db.schema.createIndex('tickets_by_expiry').on('tickets').columns(['expires_at']).execute()

    await db.schema
      .createTable('policies')
      .addColumn('workspace_id', 'text', (c) => c.primaryKey().references('workspaces.id'))
      .addColumn('policy', 'text', (c) => c.notNull())
      .addColumn('updated_by', 'text')
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .execute()

    await db.schema
      .createTable('audit_log')
      .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
      .addColumn('no', 'bigint', (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('origin', 'text', (c) => c.notNull())
      .addColumn('actor_kind', 'text', (c) => c.notNull())
      .addColumn('actor_user_id', 'text')
      .addColumn('actor_token_id', 'text')
      .addColumn('box_id', 'text')
      .addColumn('detail', 'text')
      .addColumn('salt', 'text')
      .addColumn('detail_hash', 'text', (c) => c.notNull())
      .addColumn('hash', 'text', (c) => c.notNull())
      .addPrimaryKeyConstraint('audit_log_pk', ['workspace_id', 'no'])
      .execute()
    for (const [name, column] of [
      ['audit_log_by_time', 'at'],
      ['audit_log_by_kind', 'kind'],
      ['audit_log_by_box', 'box_id'],
      ['audit_log_by_actor', 'actor_user_id'],
      ['audit_log_by_origin', 'origin'],
    ] as const)
      await db.schema.createIndex(name).on('audit_log').columns(['workspace_id', column, 'no']).execute()
    await db.schema
      .createTable('audit_heads')
      .addColumn('workspace_id', 'text', (c) => c.primaryKey().references('workspaces.id'))
      .addColumn('no', 'bigint', (c) => c.notNull())
      .addColumn('hash', 'text', (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('pruned_no', 'bigint', (c) => c.notNull())
      .addColumn('pruned_hash', 'text', (c) => c.notNull())
      .execute()
    await copyEarlierEvents(db)

    await db.schema
      .createTable('audit_sinks')
      .addColumn('workspace_id', 'text', (c) => c.primaryKey().references('workspaces.id'))
      .addColumn('url', 'text', (c) => c.notNull())
      // Signs the deliveries.
      .addColumn('secret', 'text', (c) => c.notNull())
      .addColumn('delivered_no', 'bigint', (c) => c.notNull())
      .addColumn('attempt', 'integer', (c) => c.notNull())
      .addColumn('next_attempt_at', 'bigint')
      .addColumn('last_error', 'text')
      .addColumn('last_delivered_at', 'bigint')
      .addColumn('updated_by', 'text')
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .execute()
  },
}

type EarlierEvent = {
  seq: number
  workspace_id: string
  at: number
  kind: string
  origin: 'server' | 'client'
  actor_kind: string
  actor_user_id: string | null
  actor_token_id: string | null
  box_id: string | null
  detail: string
}

/** Earlier versions recorded only deletions of the command history, without a hash. */
async function copyEarlierEvents(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<EarlierEvent>`select * from audit_events order by workspace_id, seq`.execute(db)
  for (const [workspaceId, events] of Map.groupBy(rows, (row) => row.workspace_id)) {
    let head = { no: 0, hash: START_HASH, at: 0 }
    for (const { seq: _, ...event } of events) {
      const at = Math.max(event.at, head.at)
      const row = sealAuditEvent({ ...event, at, no: head.no + 1 }, head.hash)
      await sql`insert into audit_log (${sql.join(Object.keys(row).map((name) => sql.ref(name)))})
        values (${sql.join(Object.values(row))})`.execute(db)
      head = { no: row.no, hash: row.hash, at }
    }
    await sql`insert into audit_heads (workspace_id, no, hash, at, pruned_no, pruned_hash)
      values (${workspaceId}, ${head.no}, ${head.hash}, ${head.at}, 0, ${START_HASH})`.execute(db)
  }
  await db.schema.dropTable('audit_events').execute()
}
