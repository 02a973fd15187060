// Billing: the ledger of each workspace, the meters of boxes and snapshots, and the totals of days and months.
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export const billing: Migration = {
  async up(db: Kysely<unknown>) {
    await createLedger(db)
    await createMeters(db)
  },
}

async function createLedger(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('billing_accounts')
    .addColumn('workspace_id', 'text', (c) => c.primaryKey().references('workspaces.id'))
    .addColumn('balance_micros', 'bigint', (c) => c.notNull())
    .addColumn('charged_until', 'bigint', (c) => c.notNull())
    .addColumn('paid_at', 'bigint')
    .addColumn('hold', 'text')
    .addColumn('flagged_at', 'bigint')
    .addColumn('warned_at', 'bigint')
    .addColumn('emptied_at', 'bigint')
    .addColumn('customer_id', 'text')
    .addColumn('payment_method_id', 'text')
    .addColumn('collecting_since', 'bigint')
    .addColumn('payment_failed_at', 'bigint')
    .addColumn('payment_grace_until', 'bigint')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema
    .createIndex('billing_accounts_by_customer')
    .on('billing_accounts')
    .column('customer_id')
    .execute()
  await db.schema
    .createTable('billing_entries')
    .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
    .addColumn('cause', 'text', (c) => c.notNull())
    .addColumn('kind', 'text', (c) => c.notNull())
    .addColumn('debit', 'text', (c) => c.notNull())
    .addColumn('credit', 'text', (c) => c.notNull())
    .addColumn('amount_micros', 'bigint', (c) => c.notNull())
    .addColumn('box_id', 'text')
    .addColumn('user_id', 'text')
    .addColumn('since', 'bigint')
    .addColumn('until', 'bigint')
    .addColumn('note', 'text')
    .addColumn('at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('billing_entries_pk', ['workspace_id', 'cause'])
    .execute()
  await db.schema
    .createIndex('billing_entries_by_time')
    .on('billing_entries')
    .columns(['workspace_id', 'at', 'cause'])
    .execute()
  await db.schema
    .createTable('billing_totals')
    .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
    .addColumn('period', 'text', (c) => c.notNull())
    .addColumn('box_id', 'text', (c) => c.notNull())
    .addColumn('user_id', 'text', (c) => c.notNull())
    .addColumn('amount_micros', 'bigint', (c) => c.notNull())
    .addColumn('compute_seconds', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('billing_totals_pk', ['workspace_id', 'period', 'user_id', 'box_id'])
    .execute()
}

async function createMeters(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('billing_meters')
    .addColumn('subject_id', 'text', (c) => c.primaryKey())
    .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
    .addColumn('box_id', 'text', (c) => c.notNull())
    .addColumn('user_id', 'text', (c) => c.notNull())
    .addColumn('mode', 'text', (c) => c.notNull())
    .addColumn('tier', 'text', (c) => c.notNull())
    .addColumn('megabytes', 'bigint', (c) => c.notNull())
    .addColumn('since', 'bigint', (c) => c.notNull())
    .addColumn('carry', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema
    .createTable('billing_segments')
    .addColumn('subject_id', 'text', (c) => c.notNull())
    .addColumn('workspace_id', 'text', (c) => c.notNull().references('workspaces.id'))
    .addColumn('box_id', 'text', (c) => c.notNull())
    .addColumn('user_id', 'text', (c) => c.notNull())
    .addColumn('mode', 'text', (c) => c.notNull())
    .addColumn('tier', 'text', (c) => c.notNull())
    .addColumn('megabytes', 'bigint', (c) => c.notNull())
    .addColumn('since', 'bigint', (c) => c.notNull())
    .addColumn('until', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('billing_segments_pk', ['subject_id', 'since'])
    .execute()
  for (const table of ['billing_meters', 'billing_segments'])
    await db.schema
      .createIndex(`${table}_by_workspace`)
      .on(table)
      .columns(['workspace_id', 'subject_id'])
      .execute()
}
