// Records that frozen boxes are stopped when a reboot of the machine has terminated their processes.

import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import type { Providers } from '../../providers/regions.ts'
import type { Replica } from '../../replicas/replica.ts'
import { listBoxesByObservedState } from '../store/box-lists.ts'
import { enqueueStop } from './enqueue-jobs.ts'
import type { MachineLimits } from './machine-limits.ts'

export type CheckFrozenBoxesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn'>
  replica: Pick<Replica, 'host'>
  providers: Providers
  machineLimits: MachineLimits
  /** Triggers a reconciliation of the box. */
  schedule(boxId: string): void
}

/** Stops every suspended box of the host that is recorded as frozen and whose machine is not frozen. */
export async function checkFrozenBoxes(options: CheckFrozenBoxesOptions): Promise<void> {
  const { db, clock, log, replica, providers, machineLimits, schedule } = options
  const suspended = await listBoxesByObservedState(db, ['suspended'], replica.host)
  const frozen = suspended.filter((box) => box.suspended_as === 'frozen')
  await Promise.all(
    frozen.map(async (frozenBox) => {
      const { id } = frozenBox
      try {
        const state = await machineLimits(frozenBox)(() => providers.for(frozenBox).inspect(id))
        if (state === 'frozen') return
        const reason = 'stopped: the machine was restarted while the box was frozen'
        const isEnqueued = await transaction(db, async (trx) => {
          const box = await lockBox(trx, id)
          return box !== undefined && (await enqueueStop(trx, box, { reason, now: clock.now() }))
        })
        if (isEnqueued) schedule(id)
      } catch (err) {
        log.warn({ err, boxId: id }, 'failed to inspect the machine of a frozen box')
      }
    }),
  )
}
