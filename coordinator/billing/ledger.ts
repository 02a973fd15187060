// Writes the ledger: an entry and the balance that it changes are written in one transaction.
import type { Trx } from '../db/transaction.ts'
import { changeOfBalance, insertAccount, insertEntries, updateAccount } from './store/accounts.ts'
import type { BillingAccountRow, BillingEntryRow } from './store/tables.ts'
import { floorHour } from './usage.ts'

/**
 * Inserts the entries whose cause is new, and changes the balance by them. The caller has locked the account.
 * @returns the inserted entries: none when the write is a repetition
 */
export async function post(
  trx: Trx,
  account: BillingAccountRow,
  entries: readonly BillingEntryRow[],
): Promise<{ account: BillingAccountRow; inserted: BillingEntryRow[] }> {
  const inserted = await insertEntries(trx, entries)
  const change = inserted.reduce((sum, entry) => sum + changeOfBalance(entry), 0)
  if (change === 0) return { account, inserted }
  const balance = account.balance_micros + change
  return { account: await updateAccount(trx, account.workspace_id, { balance_micros: balance }), inserted }
}

export type Posting = Pick<
  BillingEntryRow,
  'workspace_id' | 'cause' | 'kind' | 'debit' | 'credit' | 'amount_micros' | 'at'
> &
  Partial<BillingEntryRow>

/** An entry that is not about usage, unless the posting has its fields. */
export const toEntry = (posting: Posting): BillingEntryRow => ({
  box_id: null,
  user_id: null,
  since: null,
  until: null,
  note: null,
  ...posting,
})

/** Opens the account of a workspace. No-op when it has one. */
export async function openAccount(trx: Trx, workspaceId: string, now: number): Promise<void> {
  await insertAccount(trx, {
    workspace_id: workspaceId,
    balance_micros: 0,
    charged_until: floorHour(Math.floor(now / 1000)),
    free_credit_decided_at: null,
    paid_at: null,
    hold: null,
    flagged_at: null,
    warned_at: null,
    emptied_at: null,
    customer_id: null,
    payment_method_id: null,
    card_paid_micros: 0,
    collecting_since: null,
    collection_micros: null,
    payment_failed_at: null,
    payment_failure: null,
    payment_grace_until: null,
    created_at: now,
  })
}
