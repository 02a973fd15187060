// Ctrl-C: every machine of this computer is stopped, and comes back with the next start.
import type { Logger } from 'pino'
import type { ObservedState } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { enter } from './enter.ts'
import type { Provider } from './provider.ts'
import { boxesObserved, lockBox, removeJob } from './store.ts'

export type SuspendLocalOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  provider: Provider
  onMachine<T>(work: () => Promise<T>): Promise<T>
}

const USABLE: readonly ObservedState[] = ['running', 'degraded', 'waking']
const BEING_MADE: readonly ObservedState[] = ['provisioning', 'bootstrapping', 'suspending']

/**
 * Stops the machines of all boxes; their desired state stays. Boxes that were usable are observed suspended;
 * one that is being made goes on with that after the next start. The reconciler must be closed.
 * @returns the names of the boxes that were suspended.
 */
export async function suspendAll(options: SuspendLocalOptions, reason: string): Promise<string[]> {
  const { db, log, provider, onMachine } = options
  const boxes = await boxesObserved(db, [...USABLE, ...BEING_MADE])
  const suspended = await Promise.all(
    boxes.map((box) =>
      onMachine(async () => {
        const usable = USABLE.includes(box.observed_state)
        try {
          if (usable) await move(options, box.id, 'suspending', reason)
          await provider.stop(box.id)
          if (usable) await move(options, box.id, 'suspended', reason)
          return usable ? [box.hostname] : []
        } catch (err) {
          // The next start stops what is left in suspending, and then does what is desired.
          log.error({ err, boxId: box.id }, 'a box could not be suspended')
          return []
        }
      }),
    ),
  )
  return suspended.flat()
}

const move = ({ db, clock }: SuspendLocalOptions, boxId: string, to: ObservedState, reason: string) =>
  transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (!box) return
    await enter(trx, box, to, reason, 'system', clock.now())
    // A wake or recover that was under way is planned anew from suspended; a delete keeps its operation.
    if (box.desired_state !== 'terminated') await removeJob(trx, boxId)
  })
