// The box state machine as data: the allowed state transitions and the steps of each job operation.
import type { JobOp, ObservedState } from '../../../shared/api/boxes.ts'

/** Exactly the transitions that the operations below make. docs/states.md draws them. */
export const ALLOWED_TRANSITIONS: Readonly<Record<ObservedState, readonly ObservedState[]>> = {
  requested: ['provisioning', 'terminating'],
  provisioning: ['bootstrapping', 'provision_failed', 'terminating'],
  bootstrapping: ['running', 'provision_failed', 'terminating'],
  running: ['suspending', 'resizing', 'migrating', 'degraded', 'terminating'],
  suspending: ['suspended', 'deep_sleep', 'terminating'],
  suspended: ['waking', 'deep_sleep', 'migrating', 'terminating'],
  waking: ['running', 'suspending', 'terminating'],
  deep_sleep: ['waking', 'migrating', 'terminating'],
  resizing: ['running', 'suspending', 'terminating'],
  migrating: ['running', 'suspended', 'deep_sleep', 'terminating'],
  degraded: ['running', 'suspending', 'terminating'],
  provision_failed: ['terminating'],
  terminating: ['terminated'],
  terminated: [],
}

export const STEPS = [
  'provision',
  'inspect',
  'start',
  'connect',
  'adjust',
  'freeze',
  'stop',
  'archive',
  'collect',
  'discard',
  'relocate',
  'transfer',
  'unpack',
  'clean_up',
  'destroy',
] as const
export type Step = (typeof STEPS)[number]

export type Stage = {
  step: Step
  /** The observed state while the step runs. null: the state does not change. */
  state: ObservedState | null
  /** The step to retry from after a failure. Default: this step. */
  retryFrom?: Step
  /** The step works on the machine in the region to which the box is moved. */
  inDesiredRegion?: true
}

export type OpDefinition = {
  /** The reason of the box's state events, unless the job has its own. */
  reason: string
  stages: readonly [Stage, ...Stage[]]
  /** null: the state does not change. */
  finalState: ObservedState | null
  /** Other states in which a step can finish the job. */
  otherFinalStates?: readonly ObservedState[]
  /** Failed attempts after which the job ends in `failureState`. Default: the job is retried indefinitely. */
  maxAttempts?: number
  failureState?: ObservedState
  /** The only step whose failure ends the job. Default: every step. */
  failsIn?: Step
  /** The step is retried until it succeeds: after a failure, it is not known which machine has the files. */
  retriedStep?: Step
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
  // Only an enrolled machine has this job. It waits until the agent connects, and is then scheduled.
  enroll: {
    reason: 'enrolled',
    stages: [{ step: 'connect', state: 'bootstrapping' }],
    finalState: 'running',
  },
  wake: {
    reason: 'woken',
    stages: [
      { step: 'unpack', state: 'waking' },
      { step: 'start', state: 'waking' },
      { step: 'connect', state: 'waking', retryFrom: 'start' },
    ],
    finalState: 'running',
  },
  suspend: {
    reason: 'suspended',
    stages: [
      { step: 'freeze', state: 'suspending' },
      { step: 'stop', state: 'suspending' },
    ],
    finalState: 'suspended',
    // The box was being woken from deep sleep, and its machine did not exist yet.
    otherFinalStates: ['deep_sleep'],
  },
  stop: {
    reason: 'stopped',
    stages: [{ step: 'stop', state: 'suspended' }],
    finalState: 'suspended',
  },
  sleep: {
    reason: 'packed into an archive',
    stages: [
      { step: 'stop', state: 'suspended' },
      { step: 'archive', state: 'suspended' },
      { step: 'collect', state: 'suspended' },
      { step: 'discard', state: 'suspended' },
    ],
    finalState: 'deep_sleep',
    maxAttempts: 5,
    failureState: 'suspended',
    // A failure after this step does not end the job, because the machine may be partly removed.
    failsIn: 'archive',
  },
  // Where the provider applies the size to the running machine, `adjust` finishes the job. Elsewhere the box restarts.
  resize: {
    reason: 'resized',
    stages: [
      { step: 'adjust', state: 'resizing' },
      { step: 'stop', state: 'resizing' },
      { step: 'start', state: 'resizing' },
      { step: 'connect', state: 'resizing', retryFrom: 'start' },
    ],
    finalState: 'running',
  },
  // Where both regions have one file system, `relocate` moves the files: the box is in the new region, and starts there.
  // Elsewhere the box is in its region until the last step has succeeded. What remains there is removed afterwards.
  move: {
    reason: 'moved',
    stages: [
      { step: 'stop', state: 'migrating' },
      { step: 'relocate', state: 'migrating', inDesiredRegion: true },
      { step: 'archive', state: 'migrating' },
      { step: 'transfer', state: 'migrating' },
      { step: 'unpack', state: 'migrating', inDesiredRegion: true },
      { step: 'start', state: 'migrating', inDesiredRegion: true },
      { step: 'connect', state: 'migrating', retryFrom: 'start', inDesiredRegion: true },
    ],
    finalState: 'running',
    // A suspended box is not started; of a box in deep sleep, only the archive is moved.
    otherFinalStates: ['suspended', 'deep_sleep'],
    retriedStep: 'relocate',
    maxAttempts: 5,
    failureState: 'suspended',
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
  // Only an enrolled machine has this job, which waits for the agent like `enroll`.
  reconnect: {
    reason: 'reconnected',
    stages: [{ step: 'connect', state: 'degraded' }],
    finalState: 'running',
  },
  clean_up: {
    reason: 'cleaned up',
    stages: [{ step: 'clean_up', state: null }],
    finalState: null,
  },
  delete: {
    reason: 'deleted',
    // collect is not a part of destroy, because an interrupted removal leaves an incomplete spool.
    stages: [
      { step: 'collect', state: 'terminating' },
      { step: 'destroy', state: 'terminating' },
    ],
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
