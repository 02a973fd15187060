// The life of a box as data: which observed state may follow which, and the steps of each lifecycle change.
import type { JobOp, ObservedState } from '../../shared/api/boxes.ts'

/** Nothing leads to deep_sleep, resizing or migrating yet; a box that is put there by hand can be woken or deleted. */
export const FOLLOWS: Readonly<Record<ObservedState, readonly ObservedState[]>> = {
  requested: ['provisioning', 'terminating'],
  provisioning: ['bootstrapping', 'provision_failed', 'terminating'],
  bootstrapping: ['running', 'provision_failed', 'terminating'],
  running: ['suspending', 'degraded', 'terminating'],
  suspending: ['suspended', 'terminating'],
  suspended: ['waking', 'terminating'],
  waking: ['running', 'suspending', 'terminating'],
  deep_sleep: ['waking', 'terminating'],
  resizing: ['terminating'],
  migrating: ['terminating'],
  degraded: ['running', 'suspending', 'terminating'],
  provision_failed: ['terminating'],
  terminating: ['terminated'],
  terminated: [],
}

export const STEPS = ['provision', 'inspect', 'start', 'connect', 'stop', 'destroy'] as const
export type Step = (typeof STEPS)[number]

type Stage = {
  step: Step
  /** What the box is observed as while the step runs. */
  state: ObservedState
  /** The step that a failure goes back to; itself when absent. */
  retryFrom?: Step
}

export type Op = {
  /** In the box's events, when the job gives none. */
  reason: string
  stages: readonly [Stage, ...Stage[]]
  end: ObservedState
  /** Failures after which it is given up for `gaveUp`; without it, it is tried for ever. */
  attempts?: number
  gaveUp?: ObservedState
}

export const OPS: Readonly<Record<JobOp, Op>> = {
  create: {
    reason: 'created',
    stages: [
      { step: 'provision', state: 'provisioning' },
      { step: 'start', state: 'bootstrapping' },
      { step: 'connect', state: 'bootstrapping', retryFrom: 'start' },
    ],
    end: 'running',
    attempts: 5,
    gaveUp: 'provision_failed',
  },
  wake: {
    reason: 'woken',
    stages: [
      { step: 'start', state: 'waking' },
      { step: 'connect', state: 'waking', retryFrom: 'start' },
    ],
    end: 'running',
  },
  suspend: { reason: 'suspended', stages: [{ step: 'stop', state: 'suspending' }], end: 'suspended' },
  recover: {
    reason: 'recovered',
    stages: [
      { step: 'inspect', state: 'degraded' },
      { step: 'start', state: 'degraded' },
      { step: 'connect', state: 'degraded', retryFrom: 'inspect' },
    ],
    end: 'running',
  },
  delete: { reason: 'deleted', stages: [{ step: 'destroy', state: 'terminating' }], end: 'terminated' },
}

/** The stage of an operation that a job's row names; its first one for a step the operation does not have. */
export function stageOf(op: JobOp, step: string): Stage {
  const { stages } = OPS[op]
  return stages.find((stage) => stage.step === step) ?? stages[0]
}

/** The stage after this step; undefined when the operation is complete. */
export function stageAfter(op: JobOp, step: string): Stage | undefined {
  const { stages } = OPS[op]
  return stages[stages.findIndex((stage) => stage.step === step) + 1]
}
