// Suspends the boxes of this computer when the coordinator is stopped with Ctrl-C. The next start wakes them.
import type { LimitFunction } from 'p-limit'
import type { Logger } from 'pino'
import type { ObservedState } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Provider } from './provider.ts'
import { setObservedState } from './set-observed-state.ts'
import { deleteJob, listBoxesByObservedState, lockBox } from './store.ts'

export type SuspendLocalOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  provider: Provider
  machineLimit: LimitFunction
}

const SUSPENDABLE: readonly ObservedState[] = ['running', 'degraded', 'waking']
const STOPPED_ONLY: readonly ObservedState[] = ['provisioning', 'bootstrapping', 'suspending']

/**
 * Stops the machines of all boxes and keeps the desired states. Running boxes become suspended. A create or suspend in
 * progress keeps its state and continues after the next start. The reconciler must be closed first.
 * @returns the names of the suspended boxes.
 */
export async function suspendLocalBoxes(options: SuspendLocalOptions, reason: string): Promise<string[]> {
  const { db, log, provider, machineLimit } = options
  const boxes = await listBoxesByObservedState(db, [...SUSPENDABLE, ...STOPPED_ONLY])
  const suspended = await Promise.all(
    boxes.map((box) =>
      machineLimit(async () => {
        const isSuspendable = SUSPENDABLE.includes(box.observed_state)
        try {
          if (isSuspendable) await recordState(options, box.id, 'suspending', reason)
          await provider.stop(box.id)
          if (isSuspendable) await recordState(options, box.id, 'suspended', reason)
          return isSuspendable ? [box.hostname] : []
        } catch (err) {
          // The next start finishes boxes left in suspending, then restores their desired state.
          log.error({ err, boxId: box.id }, 'failed to suspend a box')
          return []
        }
      }),
    ),
  )
  return suspended.flat()
}

const recordState = (
  { db, clock }: SuspendLocalOptions,
  boxId: string,
  state: ObservedState,
  reason: string,
) =>
  transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (!box) return
    await setObservedState(trx, box, state, reason, 'system', clock.now())
    // A wake or recover in progress is planned again from suspended. A delete job is kept for its operation.
    if (box.desired_state !== 'terminated') await deleteJob(trx, boxId)
  })
