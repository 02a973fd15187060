// Bounds what workspaces get before they have paid for it: the overdrafts of saved cards, and free credit.
import { hash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { normalizeEmail } from '../../../shared/normalize-email.ts'

export const boundedCredit: Migration = {
  async up(db: Kysely<unknown>) {
    await addOverdrafts(db)
    await addFreeCredits(db)
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

/** The first owners of the workspaces that have had free credit get none for another workspace. */
async function addFreeCredits(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('free_credits')
    .addColumn('email_hash', 'text', (c) => c.primaryKey())
    .addColumn('at', 'bigint', (c) => c.notNull())
    .execute()
  await db.schema.alterTable('billing_accounts').addColumn('free_credit_decided_at', 'bigint').execute()
  await sql`update billing_accounts set free_credit_decided_at = created_at`.execute(db)
  const { rows } = await sql<{ workspace_id: string; at: number; email: string }>`
    select billing_entries.workspace_id, billing_entries.at, users.email
    from billing_entries join users on users.workspace_id = billing_entries.workspace_id
    where billing_entries.cause = 'free_credit' and users.role = 'owner'
      and users.joined_at is not null and users.email is not null
    order by users.created_at, users.id`.execute(db)
  const decided = new Set<string>()
  for (const { workspace_id, at, email } of rows) {
    if (decided.has(workspace_id)) continue
    decided.add(workspace_id)
    const emailHash = hash('sha256', normalizeEmail(email), 'hex')
    await sql`insert into free_credits (email_hash, at) values (${emailHash}, ${at})
      on conflict do nothing`.execute(db)
  }
}
