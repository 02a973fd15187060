// The only writer of observed states: checks the transition and records its event.
import type { ObservedState, SuspendedAs } from '../../../shared/api/boxes.ts'
import type { ErrorCode } from '../../../shared/errors.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { markCommandsLost } from '../../history/commands/mark-lost.ts'
import { releaseSource } from '../sources/sources.ts'
import { updateBox } from '../store/boxes.ts'
import { recordStateChange } from '../store/events.ts'
import { ALLOWED_TRANSITIONS } from './transitions.ts'
import { updateSchedules } from './update-schedules.ts'

const EFFECT_ON_PROCESSES: Record<SuspendedAs, string> = {
  frozen: 'its processes are frozen and keep their memory',
  stopped: 'its processes were terminated',
}

/**
 * Does nothing when the box is already in the state. A box becomes suspended as `box.suspended_as`. Throws when
 * ALLOWED_TRANSITIONS forbids the transition.
 */
export async function setObservedState(
  trx: Trx,
  box: BoxRow,
  to: ObservedState,
  reason: string,
  actor: string,
  now: number,
  errorCode: ErrorCode | null = null,
): Promise<BoxRow> {
  const updatedBox = await writeObservedState(trx, box, to, reason, actor, now, errorCode)
  if (updatedBox !== box) await updateSchedules(trx, updatedBox, now)
  return updatedBox
}

async function writeObservedState(
  trx: Trx,
  box: BoxRow,
  to: ObservedState,
  reason: string,
  actor: string,
  now: number,
  errorCode: ErrorCode | null,
): Promise<BoxRow> {
  const from = box.observed_state
  if (from === to) return box
  if (!ALLOWED_TRANSITIONS[from].includes(to))
    throw new Error(`Illegal box state transition: ${from} to ${to}.`)
  const suspendedAs = box.suspended_as ?? 'stopped'
  const event = to === 'suspended' ? `${reason}; ${EFFECT_ON_PROCESSES[suspendedAs]}` : reason
  await recordStateChange(trx, box.id, { from, to, reason: event, errorCode, actor, at: now })
  // The box has the files of its snapshot, or will never have them.
  if (to !== 'provisioning') await releaseSource(trx, box, now)
  const changes = { observed_state: to, state_since: now, updated_at: now }
  if (to === 'suspended') {
    if (suspendedAs === 'stopped') await forgetProcesses(trx, box)
    return updateBox(trx, box.id, { ...changes, suspended_as: suspendedAs })
  }
  if (to === 'terminated' || to === 'deep_sleep') await forgetProcesses(trx, box)
  // The memory of a box that is being woken or suspended again may still exist.
  const isPaused = to === 'waking' || to === 'suspending'
  return updateBox(trx, box.id, isPaused ? changes : { ...changes, suspended_as: null })
}

/** Records that a suspended box has been stopped. */
export async function recordStopped(
  trx: Trx,
  box: BoxRow,
  reason: string,
  actor: string,
  now: number,
): Promise<BoxRow> {
  await forgetProcesses(trx, box)
  const event = `${reason}; ${EFFECT_ON_PROCESSES.stopped}`
  await recordStateChange(trx, box.id, { from: 'suspended', to: 'suspended', reason: event, actor, at: now })
  return updateBox(trx, box.id, { suspended_as: 'stopped', updated_at: now })
}

/** The machine has stopped, and its processes and ports with it. */
async function forgetProcesses(trx: Trx, box: BoxRow): Promise<void> {
  await markCommandsLost(trx, box.id)
  await updateBox(trx, box.id, { listening_ports: null })
}
