// The box state machine as data: the allowed state transitions and the steps of each job operation.
import type { JobOp, ObservedState } from '../../shared/api/boxes.ts'

/**
 * No operation leads to deep_sleep, resizing or migrating yet. Their transitions are for boxes whose state was set in the
 * database directly: a box in deep_sleep can be woken or deleted, a box in resizing or migrating can be deleted.
 */
export const ALLOWED_TRANSITIONS: Readonly<Record<ObservedState, readonly ObservedState[]>> = {
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
  /** The observed state while the step runs. */
  state: ObservedState
  /** The step to retry from after a failure. Default: this step. */
  retryFrom?: Step
}

export type OpDefinition = {
  /** The reason of the box's state events, unless the job has its own. */
  reason: string
  stages: readonly [Stage, ...Stage[]]
  finalState: ObservedState
  /** Failed attempts after which the job ends in `failureState`. Default: the job is retried indefinitely. */
  maxAttempts?: number
  failureState?: ObservedState
}

export const OP_DEFINITIONS: Readonly<Record<JobOp, OpDefinition>> = {
  create: {
    reason: 'created',
    stages: [
      { step: 'provision', state: 'provisioning' },
      { step: 'start', state: 'bootstrapping' },
      { step: 'connect', state: 'bootstrapping', retryFrom: 'start' },
    ],
    finalState: 'running',
    maxAttempts: 5,
    failureState: 'provision_failed',
  },
  wake: {
    reason: 'woken',
    stages: [
      { step: 'start', state: 'waking' },
      { step: 'connect', state: 'waking', retryFrom: 'start' },
    ],
    finalState: 'running',
  },
  suspend: {
    reason: 'suspended',
    stages: [{ step: 'stop', state: 'suspending' }],
    finalState: 'suspended',
  },
  recover: {
    reason: 'recovered',
    stages: [
      { step: 'inspect', state: 'degraded' },
      { step: 'start', state: 'degraded' },
      { step: 'connect', state: 'degraded', retryFrom: 'inspect' },
    ],
    finalState: 'running',
  },
  delete: {
    reason: 'deleted',
    stages: [{ step: 'destroy', state: 'terminating' }],
    finalState: 'terminated',
  },
}

/** The stage of a job row's step; the first stage when the operation has no such step. */
export function findStage(op: JobOp, step: string): Stage {
  const { stages } = OP_DEFINITIONS[op]
  return stages.find((stage) => stage.step === step) ?? stages[0]
}

/** The stage after this step; undefined after the last one. */
export function nextStage(op: JobOp, step: string): Stage | undefined {
  const { stages } = OP_DEFINITIONS[op]
  return stages[stages.findIndex((stage) => stage.step === step) + 1]
}
