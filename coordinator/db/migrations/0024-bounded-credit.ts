// Bounds what workspaces get before they have paid for it.
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const boundedCredit: Migration = {
  async up(db: Kysely<unknown>) {
    await addOverdrafts(db)
  },
}

/** The earlier payments of a workspace count as those of its saved card: the ledger does not have the cards. */
async function addOverdrafts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('billing_accounts')
    .addColumn('card_paid_micros', 'bigint', (c) => c.notNull().defaultTo(0))
    .execute()
  await db.schema.alterTable('billing_accounts').addColumn('collection_micros', 'bigint').execute()
  await sql`update billing_accounts
    set card_paid_micros = (
      select coalesce(sum(case kind when 'top_up' then amount_micros else -amount_micros end), 0)
      from billing_entries
      where billing_entries.workspace_id = billing_accounts.workspace_id and kind in ('top_up', 'refund'))
    where payment_method_id is not null`.execute(db)
  await sql`update billing_accounts set card_paid_micros = 0 where card_paid_micros < 0`.execute(db)
}
