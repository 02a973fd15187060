// Flags workspaces on free credit whose boxes use their full CPU for hours. Operators see the flag; it has no other effect.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Finances } from './service.ts'
import { lockAccount, updateAccount } from './store/accounts.ts'

export type FullCpuOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn'>
  /** The average CPU usage in percent of the limit of the box; null: the box did not run all the time. Milliseconds. */
  averageCpu(boxId: string, range: { from: number; to: number }): Promise<number | null>
}

const SPAN_MS = 6 * 3_600_000
const FULL_PERCENT = 90

export function createFullCpuDetector({ db, clock, log, averageCpu }: FullCpuOptions) {
  return async ({ account, meters }: Pick<Finances, 'account' | 'meters'>): Promise<void> => {
    const { workspace_id: workspaceId } = account
    if (account.paid_at !== null || account.flagged_at !== null) return
    const now = clock.now()
    for (const { subject_id: boxId, mode } of meters) {
      if (mode !== 'compute') continue
      const percent = await averageCpu(boxId, { from: now - SPAN_MS, to: now })
      if (percent === null || percent < FULL_PERCENT) continue
      const isFlagged = await transaction(db, async (trx) => {
        const current = await lockAccount(trx, workspaceId)
        // A payment meanwhile has ended what the flag is about.
        if (current === undefined || current.paid_at !== null) return false
        await updateAccount(trx, workspaceId, { flagged_at: now })
        return true
      })
      if (!isFlagged) return
      log.warn({ workspaceId, boxId, percent }, 'a box on free credit has used its full CPU for 6 hours')
      return
    }
  }
}
