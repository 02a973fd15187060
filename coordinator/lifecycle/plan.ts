// What to do next about a box: a pure function of what is wanted, what is and what is under way.
import type { DesiredState, JobOp, ObservedState } from '../../shared/api/boxes.ts'
import { OPS, type Step, stageOf } from './transitions.ts'

export type Situation = {
  desired: DesiredState
  observed: ObservedState
  /** The change in flight. */
  job: { op: JobOp; step: string } | null
}

export type NextStep = { op: JobOp; step: Step }

/**
 * The step to take, or null when the box is as it should be (or cannot be helped). It may belong to another
 * operation than the job in flight: desires change midway, and the plan is made anew after each step.
 */
export function plan({ desired, observed, job }: Situation): NextStep | null {
  if (observed === 'terminated') return null
  if (desired === 'terminated') return stepOf('delete', observed, job)
  if (observed === 'provision_failed') return null
  // A create is not turned round midway: it ends in running, and from there the box is suspended.
  if (job?.op === 'create') return stepOf('create', observed, job)
  const op = desired === 'suspended' ? towardsSuspended(observed) : towardsRunning(observed, job?.op)
  return op && stepOf(op, observed, job)
}

function towardsSuspended(observed: ObservedState): JobOp | null {
  if (observed === 'suspended' || observed === 'deep_sleep') return null
  return unfinishedCreate(observed) ?? 'suspend'
}

function towardsRunning(observed: ObservedState, current: JobOp | undefined): JobOp | null {
  switch (observed) {
    case 'running':
      return current === 'recover' ? 'recover' : null
    case 'degraded':
      return 'recover'
    case 'suspending':
      // A machine half stopped is stopped first, then woken.
      return 'suspend'
    case 'suspended':
    case 'deep_sleep':
    case 'waking':
      return 'wake'
    default:
      return unfinishedCreate(observed)
  }
}

const unfinishedCreate = (observed: ObservedState): JobOp | null =>
  observed === 'requested' || observed === 'provisioning' || observed === 'bootstrapping' ? 'create' : null

/** The job's own step; without such a job, the first one of the state the box is in already, or the first at all. */
function stepOf(op: JobOp, observed: ObservedState, job: Situation['job']): NextStep {
  if (job?.op === op) return { op, step: stageOf(op, job.step).step }
  const { stages } = OPS[op]
  return { op, step: (stages.find(({ state }) => state === observed) ?? stages[0]).step }
}
