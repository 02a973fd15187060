// Plans the next step of a box: a pure function of its desired state, observed state and job.
import type { DesiredState, JobOp, ObservedState } from '../../shared/api/boxes.ts'
import { findStage, OP_DEFINITIONS, type Step } from './transitions.ts'

export type Situation = {
  desired: DesiredState
  observed: ObservedState
  /** The job in progress. */
  job: { op: JobOp; step: string } | null
}

export type NextStep = { op: JobOp; step: Step }

/**
 * Returns null when the box is in its desired state or cannot reach it. The step may belong to another operation
 * than the current job: the desired state can change at any time, so callers plan again after each step.
 */
export function plan({ desired, observed, job }: Situation): NextStep | null {
  if (observed === 'terminated') return null
  if (desired === 'terminated') return nextStepOf('delete', observed, job)
  if (observed === 'provision_failed') return null
  // A create is not reversed midway: the box becomes running first and is suspended from there.
  if (job?.op === 'create') return nextStepOf('create', observed, job)
  const op = desired === 'suspended' ? opTowardsSuspended(observed) : opTowardsRunning(observed, job?.op)
  return op && nextStepOf(op, observed, job)
}

function opTowardsSuspended(observed: ObservedState): JobOp | null {
  if (observed === 'suspended' || observed === 'deep_sleep') return null
  return createIfUnfinished(observed) ?? 'suspend'
}

function opTowardsRunning(observed: ObservedState, currentOp: JobOp | undefined): JobOp | null {
  switch (observed) {
    case 'running':
      return currentOp === 'recover' ? 'recover' : null
    case 'degraded':
      return 'recover'
    case 'suspending':
      // The machine may be partly stopped: finish the suspend, then wake the box.
      return 'suspend'
    case 'suspended':
    case 'deep_sleep':
    case 'waking':
      return 'wake'
    default:
      return createIfUnfinished(observed)
  }
}

const createIfUnfinished = (observed: ObservedState): JobOp | null =>
  observed === 'requested' || observed === 'provisioning' || observed === 'bootstrapping' ? 'create' : null

/** The current job's step if it has this op; else the op's first step for the observed state, or its first step. */
function nextStepOf(op: JobOp, observed: ObservedState, job: Situation['job']): NextStep {
  if (job?.op === op) return { op, step: findStage(op, job.step).step }
  const { stages } = OP_DEFINITIONS[op]
  return { op, step: (stages.find(({ state }) => state === observed) ?? stages[0]).step }
}
