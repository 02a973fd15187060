// Why the last payment from the saved card of a workspace has failed, and an index of the refunds in its ledger.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const paymentFailures: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('billing_accounts').addColumn('payment_failure', 'text').execute()
    // No query reads accounts by the customer.
    await db.schema.dropIndex('billing_accounts_by_customer').execute()
    await sql`create index billing_refunds on billing_entries (workspace_id) where kind = 'refund'`.execute(
      db,
    )
  },
}
