// Suspends the local boxes when the coordinator is stopped with Ctrl-C or `box down`. The next start wakes them.
import type { LimitFunction } from 'p-limit'
import type { Logger } from 'pino'
import type { ObservedState } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { SuspendedBoxes } from '../../shared/coordinator-process.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { withTimeout } from '../timeout.ts'
import type { Tunnels } from '../tunnel/types.ts'
import { collectReports } from './collect-reports.ts'
import type { Provider } from './provider.ts'
import { setObservedState } from './set-observed-state.ts'
import { deleteJob, listBoxesByObservedState, lockBox } from './store.ts'

export type SuspendLocalBoxesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  provider: Pick<Provider, 'stop' | 'inspect'>
  /** null: no coordinator runs, so the final reports stay on the boxes until the next start. */
  tunnels: Pick<Tunnels, 'current' | 'flushReports'> | null
  /** Limits concurrent provider calls. */
  machineLimit: LimitFunction
  /** How long stopping one machine may take. Default: 30 s, more than the provider's grace period and kill timeout. */
  stopTimeoutMs?: number
}

/** Boxes in these states become suspended. */
const SUSPENDABLE_STATES: readonly ObservedState[] = ['running', 'degraded', 'waking']
/** Boxes in these states keep their state: only their machine is stopped. */
const UNCHANGED_STATES: readonly ObservedState[] = [
  'provisioning',
  'bootstrapping',
  'suspending',
  'terminating',
]

/**
 * Stops the machine of every box in the states above. Desired states do not change, so the next start wakes the suspended
 * boxes and continues a create, suspend or deletion in progress. Close the reconciler first.
 * @param reason the reason of the boxes' state events.
 * @returns the names of the boxes.
 */
export async function suspendLocalBoxes(
  options: SuspendLocalBoxesOptions,
  reason: string,
): Promise<SuspendedBoxes> {
  const { db, log, provider, tunnels, machineLimit, stopTimeoutMs = 30_000 } = options
  const boxes = await listBoxesByObservedState(db, [...SUSPENDABLE_STATES, ...UNCHANGED_STATES])
  const result: SuspendedBoxes = { suspended: [], stopped: [], failed: [] }
  await Promise.all(
    boxes.map((box) =>
      machineLimit(async () => {
        const isSuspendable = SUSPENDABLE_STATES.includes(box.observed_state)
        try {
          if (isSuspendable) await recordObservedState(options, box.id, 'suspending', reason)
          const stopMachine = async () => {
            const wasRunning = (await provider.inspect(box.id)) === 'running'
            if (isSuspendable && tunnels !== null) await collectReports(box.id, { provider, tunnels, log })
            await provider.stop(box.id)
            return wasRunning
          }
          const wasRunning = await withTimeout(
            stopMachine(),
            stopTimeoutMs,
            `the machine did not stop within ${stopTimeoutMs} ms`,
          )
          if (isSuspendable) await recordObservedState(options, box.id, 'suspended', reason)
          if (isSuspendable) result.suspended.push(box.hostname)
          else if (wasRunning) result.stopped.push(box.hostname)
        } catch (err) {
          // The next start finishes the suspend of a box in state suspending, then restores its desired state.
          log.error(
            { err, box: box.hostname, boxId: box.id },
            'failed to suspend a box; the next start restores its desired state',
          )
          result.failed.push(box.hostname)
        }
      }),
    ),
  )
  for (const names of Object.values(result)) names.sort()
  return result
}

const recordObservedState = (
  { db, clock }: SuspendLocalBoxesOptions,
  boxId: string,
  state: ObservedState,
  reason: string,
) =>
  transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (!box) return
    await setObservedState(trx, box, state, reason, 'system', clock.now())
    // The next start plans a new job from suspended. Keep a delete job, which has the id of its operation.
    if (box.desired_state !== 'terminated') await deleteJob(trx, boxId)
  })
