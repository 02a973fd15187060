// A coordinator with billing, whose clock stands still: nothing is used, so that balances are exact.
import type { Test } from 'tap'
import type { Billing } from '../../coordinator/billing/billing.ts'
import { post, toEntry } from '../../coordinator/billing/ledger.ts'
import { updateAccount } from '../../coordinator/billing/store/accounts.ts'
import type { BillingAccountRow } from '../../coordinator/billing/store/tables.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import { newUuid } from '../../shared/ids.ts'
import { type CoordinatorOptions, startTestCoordinator, type TestCoordinator } from './coordinator.ts'
import { createTestClock } from './workspace.ts'

export type BilledCoordinator = TestCoordinator & {
  workspaceId: string
  finances: NonNullable<Billing>['finances']
  /** Sets the balance by an entry, and fields of the account. */
  setAccount(balanceMicros: number, changes?: Partial<BillingAccountRow>): Promise<void>
}

/** The workspace has no boxes and no credit. */
export async function startBilledCoordinator(
  t: Test,
  { env = {}, ...options }: CoordinatorOptions = {},
): Promise<BilledCoordinator> {
  const coordinator = await startTestCoordinator(t, {
    clock: createTestClock(Math.floor(Date.now() / 1000) * 1000),
    env: { BOXWOOD_BILLING: 'manual', BOXWOOD_FREE_CREDIT: '0', ...env },
    ...options,
  })
  const { db, clock, billing } = coordinator.instance.context
  const workspaceId = coordinator.instance.owner?.workspaceId ?? ''
  if (billing === null || workspaceId === '') throw new Error('the coordinator has no billing')
  const { finances } = billing

  async function setAccount(balanceMicros: number, changes: Partial<BillingAccountRow> = {}): Promise<void> {
    await transaction(db, async (trx) => {
      const loaded = await finances.load(trx, workspaceId)
      const change = balanceMicros - loaded.balanceMicros
      const isCredit = change > 0
      const entry = toEntry({
        workspace_id: workspaceId,
        cause: newUuid(),
        kind: 'adjustment',
        debit: isCredit ? 'adjustments' : 'balance',
        credit: isCredit ? 'balance' : 'adjustments',
        amount_micros: Math.abs(change),
        at: clock.now(),
      })
      await post(trx, loaded.account, [entry])
      await updateAccount(trx, workspaceId, { paid_at: clock.now(), ...changes })
    })
  }

  const { json } = await coordinator.api('GET', '/boxes')
  for (const { id } of json.boxes) {
    await coordinator.api('DELETE', `/boxes/${id}`)
    await coordinator.waitForState(id, 'terminated')
  }
  return { ...coordinator, workspaceId, finances, setAccount }
}
