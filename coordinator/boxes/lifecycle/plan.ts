// Plans the next step of a box: a pure function of its desired state, observed state and job.
import type { DesiredState, JobOp, ObservedState, SuspendedAs } from '../../../shared/api/boxes.ts'
import type { BoxRow, JobRow } from '../../db/schema.ts'
import { findStage, OP_DEFINITIONS, type Step } from './transitions.ts'

export type Situation = {
  /** An enrolled machine, which is never suspended, resized or moved. */
  isMachine: boolean
  desired: DesiredState
  observed: ObservedState
  /** Written when the stop of a frozen box begins. */
  suspendedAs: SuspendedAs | null
  /** The files of the machine are in an archive, or are being archived. The machine may exist too. */
  hasArchive: boolean
  /** Machines and archives that earlier operations have left. */
  hasLeftovers: boolean
  /** The job in progress. */
  job: { op: JobOp; step: string } | null
}

export type NextStep = { op: JobOp; step: Step }

export const describeSituation = (box: BoxRow, job: Pick<JobRow, 'op' | 'step'> | null): Situation => ({
  isMachine: box.kind === 'machine',
  desired: box.desired_state,
  observed: box.observed_state,
  suspendedAs: box.suspended_as,
  hasArchive: box.archive_id !== null,
  hasLeftovers: box.leftovers !== null,
  job,
})

/**
 * Returns null when the box is in its desired state or cannot reach it. The step may belong to another operation
 * than the current job: the desired state can change at any time, so callers plan again after each step.
 */
export function plan(situation: Situation): NextStep | null {
  const op = nextOp(situation)
  return op && { op, step: nextStepOf(op, situation) }
}

function nextOp(situation: Situation): JobOp | null {
  const { isMachine, desired, observed, job, hasLeftovers } = situation
  if (observed === 'terminated') return null
  if (desired === 'terminated') return 'delete'
  if (isMachine) return opOfMachine(observed, job?.op)
  if (observed === 'provision_failed') return null
  if (job && isIrreversible(situation)) return job.op
  const op =
    createIfUnfinished(observed) ??
    (desired === 'suspended' ? opTowardsSuspended(observed, job?.op) : opTowardsRunning(observed, job?.op))
  return op ?? (hasLeftovers ? 'clean_up' : null)
}

function opOfMachine(observed: ObservedState, currentOp: JobOp | undefined): JobOp | null {
  if (observed === 'bootstrapping') return 'enroll'
  if (observed === 'degraded') return 'reconnect'
  return observed === 'running' && currentOp === 'reconnect' ? 'reconnect' : null
}

/** Whether the current step must succeed before another operation can begin. */
function isIrreversible({ observed, suspendedAs, job }: Situation): boolean {
  // A create is not reversed midway: the box becomes running first and is suspended from there. A move ends in either region.
  if (job?.op === 'create' || job?.op === 'move') return true
  if (observed !== 'suspended') return false
  // The machine may be partly stopped or partly removed.
  return job?.step === 'discard' || (job?.step === 'stop' && suspendedAs === 'stopped')
}

function opTowardsSuspended(observed: ObservedState, currentOp: JobOp | undefined): JobOp | null {
  if (observed === 'deep_sleep') return null
  if (observed !== 'suspended') return 'suspend'
  return currentOp === 'stop' || currentOp === 'sleep' ? currentOp : null
}

function opTowardsRunning(observed: ObservedState, currentOp: JobOp | undefined): JobOp | null {
  switch (observed) {
    case 'running':
      return currentOp === 'recover' || currentOp === 'resize' ? currentOp : null
    case 'resizing':
      return 'resize'
    case 'degraded':
      return 'recover'
    case 'suspending':
      // The machine may be partly stopped: finish the suspend, then wake the box.
      return 'suspend'
    default:
      return 'wake'
  }
}

const createIfUnfinished = (observed: ObservedState): JobOp | null =>
  observed === 'requested' || observed === 'provisioning' || observed === 'bootstrapping' ? 'create' : null

/** The current job's step if it has this op; else the op's first step for the situation. */
function nextStepOf(op: JobOp, { observed, suspendedAs, hasArchive, job }: Situation): Step {
  if (job?.op === op) return findStage(op, job.step).step
  if (op === 'wake' && !hasArchive) return 'start'
  if (op === 'sleep' && suspendedAs !== 'frozen') return 'archive'
  const { stages } = OP_DEFINITIONS[op]
  return (stages.find(({ state }) => state === observed) ?? stages[0]).step
}
