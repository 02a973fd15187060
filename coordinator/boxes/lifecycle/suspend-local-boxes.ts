// Suspends the boxes when the coordinator is stopped with Ctrl-C or `box down`. The next start wakes them. Boxes are
// stopped, never frozen: nothing of them runs on.

import type { Logger } from 'pino'
import type { ObservedState } from '../../../shared/api/boxes.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { SuspendedBoxes } from '../../../shared/coordinator-process.ts'
import type { Region } from '../../../shared/tiers.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { RunLimited } from '../../base/fair-queue.ts'
import { withTimeout } from '../../base/timeout.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { transaction } from '../../db/transaction.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Replica } from '../../replicas/replica.ts'
import { listBoxesByObservedState } from '../store/box-lists.ts'
import { deleteJob, findJob } from '../store/jobs.ts'
import { collectReports } from './collect-reports.ts'
import { recordStopped, setObservedState } from './set-observed-state.ts'

export type SuspendLocalBoxesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  replica: Pick<Replica, 'host'>
  providers: { inRegion(region: Region): Pick<Provider, 'stop' | 'inspect'> }
  /** Whether the providers can stop the box. Default: they can stop every box. */
  canStop?(box: BoxRow): boolean
  /** null: no coordinator runs, so the final reports stay on the boxes until the next start. */
  tunnels: Pick<Tunnels, 'current' | 'wait' | 'flushReports'> | null
  /** Limits concurrent provider calls. */
  machineLimit: RunLimited
  /** How long stopping one machine may take. Default: 30 s, more than the provider's grace period and kill timeout. */
  stopTimeoutMs?: number
}

/** Boxes in these states become suspended. */
const SUSPENDABLE_STATES: readonly ObservedState[] = ['running', 'degraded', 'waking']
/** Boxes in these states keep their state: only their machine is stopped. */
const UNCHANGED_STATES: readonly ObservedState[] = [
  // A machine that waited for a box runs while the files of the box are copied.
  'requested',
  'provisioning',
  'bootstrapping',
  'suspending',
  'resizing',
  'migrating',
  'terminating',
]

/**
 * Stops the machine of every box of the host in the states above, and of every frozen box. Desired states do not change, so the next
 * start wakes the boxes that ran and continues the jobs in progress. Close the reconciler first.
 * @param reason the reason of the boxes' state events.
 * @returns the names of the boxes.
 */
export async function suspendLocalBoxes(
  options: SuspendLocalBoxesOptions,
  reason: string,
): Promise<SuspendedBoxes> {
  const {
    db,
    log,
    replica,
    providers,
    tunnels,
    machineLimit,
    stopTimeoutMs = 30_000,
    canStop = () => true,
  } = options
  const boxes = (
    await listBoxesByObservedState(
      db,
      [...SUSPENDABLE_STATES, ...UNCHANGED_STATES, 'suspended'],
      replica.host,
    )
  )
    // An enrolled machine is not local.
    .filter(({ kind }) => kind === 'managed')
    .filter((box) => box.observed_state !== 'suspended' || box.suspended_as === 'frozen')
  const result: SuspendedBoxes = { suspended: [], stopped: [], failed: [], left: [] }
  await Promise.all(
    boxes.map((box) =>
      machineLimit(async () => {
        if (!canStop(box)) return void result.left.push(box.hostname)
        const isSuspendable = SUSPENDABLE_STATES.includes(box.observed_state)
        try {
          if (isSuspendable) await recordObservedState(options, box.id, 'suspending', reason)
          const stopMachine = async () => {
            const provider = providers.inRegion(box.region)
            const state = await provider.inspect(box.id)
            if (box.desired_region !== null) await providers.inRegion(box.desired_region).stop(box.id)
            if (isSuspendable && tunnels !== null) await collectReports(box, { providers, tunnels, log })
            await provider.stop(box.id)
            return state
          }
          const state = await withTimeout(
            stopMachine(),
            stopTimeoutMs,
            `the machine did not stop within ${stopTimeoutMs} ms`,
          )
          // A box that was being woken from deep sleep.
          const isPacked = state === 'absent' && box.archive_id !== null
          if (isSuspendable)
            await recordObservedState(options, box.id, isPacked ? 'deep_sleep' : 'suspended', reason)
          else if (box.observed_state === 'suspended') await recordFrozenStopped(options, box.id, reason)
          if (isSuspendable) result.suspended.push(box.hostname)
          else if (state === 'running' || state === 'frozen') result.stopped.push(box.hostname)
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
    await setObservedState(trx, { ...box, suspended_as: 'stopped' }, state, reason, 'system', clock.now())
    // The next start plans a new job from suspended. Keep a job that the state of the box does not describe: a delete has
    // the id of its operation.
    const job = await findJob(trx, boxId)
    if (job?.op !== 'delete' && job?.op !== 'move') await deleteJob(trx, boxId)
  })

const recordFrozenStopped = ({ db, clock }: SuspendLocalBoxesOptions, boxId: string, reason: string) =>
  transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (box?.observed_state === 'suspended') await recordStopped(trx, box, reason, 'system', clock.now())
  })
