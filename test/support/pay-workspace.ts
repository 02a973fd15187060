// Adds credit to a workspace, as a payment does: it has the paid plan afterwards.
import { post, toEntry } from '../../coordinator/billing/ledger.ts'
import { updateAccount } from '../../coordinator/billing/store/accounts.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import type { TestCoordinator } from './coordinator.ts'

/** Enough for all boxes of a test. */
const CREDIT_MICROS = 1_000_000_000

/** Expects a coordinator with BOXWOOD_BILLING. */
export async function payWorkspace({ instance }: Pick<TestCoordinator, 'instance'>): Promise<void> {
  const { db, billing, clock } = instance.context
  const { workspaceId } = instance.owner ?? {}
  if (billing === null || workspaceId === undefined) throw new Error('there is no owner, or billing is off')
  await transaction(db, async (trx) => {
    await billing.finances.load(trx, workspaceId)
    const account = await updateAccount(trx, workspaceId, { paid_at: clock.now() })
    const credit = toEntry({
      workspace_id: workspaceId,
      cause: 'credit:test',
      kind: 'credit',
      debit: 'manual_payments',
      credit: 'balance',
      amount_micros: CREDIT_MICROS,
      at: clock.now(),
    })
    await post(trx, account, [credit])
  })
}
