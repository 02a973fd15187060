// Compares the balance and the totals of a workspace with the entries of its ledger.
import type { LedgerDifference } from '../../../shared/api/operator.ts'
import type { Db } from '../../db/open.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { findAccount, lockAccount, sumEntries, sumUsage } from '../store/accounts.ts'
import { listMonths, listTotals } from '../store/totals.ts'

/** Entries that are written during the check make differences, so these are computed again under the lock of the account. */
export async function checkWorkspace(db: Db, workspaceId: string): Promise<LedgerDifference[]> {
  const differences = await compare(db, workspaceId)
  if (differences.length === 0) return []
  return transaction(db, async (trx) => {
    await lockAccount(trx, workspaceId)
    return compare(trx, workspaceId)
  })
}

async function compare(db: Db | Trx, workspaceId: string): Promise<LedgerDifference[]> {
  const account = await findAccount(db, workspaceId)
  if (account === undefined) return []
  const balance = await sumEntries(db, workspaceId)
  const differences = [diff('balance', account.balance_micros, balance)]
  const usage = Map.groupBy(await sumUsage(db, workspaceId), ({ month }) => month)
  const months = new Set([...usage.keys(), ...(await listMonths(db, workspaceId))])
  for (const month of [...months].sort()) {
    const toKey = (row: { box_id: string; user_id: string }) =>
      `total ${month} box ${row.box_id} user ${row.user_id}`
    const stored = new Map(
      (await listTotals(db, { workspaceId, period: month })).map((row) => [toKey(row), row.amount_micros]),
    )
    const computed = new Map((usage.get(month) ?? []).map((row) => [toKey(row), row.micros]))
    for (const key of new Set([...stored.keys(), ...computed.keys()]))
      differences.push(diff(key, stored.get(key) ?? 0, computed.get(key) ?? 0))
  }
  return differences
    .filter(({ storedMicros, computedMicros }) => storedMicros !== computedMicros)
    .map((difference) => ({ workspaceId, ...difference }))
}

const diff = (what: string, storedMicros: number, computedMicros: number) => ({
  what,
  storedMicros,
  computedMicros,
})
