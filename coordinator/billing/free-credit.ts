// Gives free credit: once to each person, for the first workspace with a confirmed email address of the person.
import { hash } from 'node:crypto'
import { normalizeEmail } from '../../shared/normalize-email.ts'
import type { Trx } from '../db/transaction.ts'
import { isFirstWorkspace, listOwners } from '../identity/lookups.ts'
import { post, toEntry } from './ledger.ts'
import { updateAccount } from './store/accounts.ts'
import { claimFreeCredit } from './store/free-credits.ts'
import type { BillingAccountRow } from './store/tables.ts'

/** The addresses of deleted workspaces are kept in this form only. */
export const hashEmail = (email: string): string => hash('sha256', normalizeEmail(email), 'hex')

/** Whether the workspace gets free credit. null: no owner has confirmed an email address yet. */
async function decide(trx: Trx, workspaceId: string, now: number): Promise<boolean | null> {
  // The first workspace is that of the operator, whose owner may have no address.
  if (await isFirstWorkspace(trx, workspaceId)) return true
  const [owner] = await listOwners(trx, workspaceId)
  return owner === undefined ? null : claimFreeCredit(trx, { email_hash: hashEmail(owner.email), at: now })
}

/** Decides once. No-op for a workspace for which it is decided. The caller has locked the account. */
export async function grantFreeCredit(
  trx: Trx,
  account: BillingAccountRow,
  { freeCreditMicros, now }: { freeCreditMicros: number; now: number },
): Promise<BillingAccountRow> {
  if (account.free_credit_decided_at !== null) return account
  const { workspace_id: workspaceId } = account
  const isGranted = freeCreditMicros === 0 ? false : await decide(trx, workspaceId, now)
  if (isGranted === null) return account
  const decided = await updateAccount(trx, workspaceId, { free_credit_decided_at: now })
  if (!isGranted) return decided
  const credit = toEntry({
    workspace_id: workspaceId,
    cause: 'free_credit',
    kind: 'free_credit',
    debit: 'promotions',
    credit: 'balance',
    amount_micros: freeCreditMicros,
    at: now,
  })
  return (await post(trx, decided, [credit])).account
}
