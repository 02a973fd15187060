// The state machine: walks every situation that a box can get into, by any request, step result and failure.
import t from 'tap'
import { plan, type Situation } from '../../../../coordinator/boxes/lifecycle/plan.ts'
import {
  ALLOWED_TRANSITIONS,
  findStage,
  nextStage,
  OP_DEFINITIONS,
  type Step,
} from '../../../../coordinator/boxes/lifecycle/transitions.ts'
import { DESIRED_STATES, type JobOp, type ObservedState } from '../../../../shared/api/boxes.ts'

type Node = Omit<Situation, 'job'> & { job: { op: JobOp; step: Step } | null; isPacked: boolean }

const REQUESTED: Node = {
  isMachine: false,
  desired: 'running',
  observed: 'requested',
  suspendedAs: null,
  hasArchive: false,
  hasLeftovers: false,
  job: { op: 'create', step: 'provision' },
  isPacked: false,
}
const ENROLLED: Node = {
  ...REQUESTED,
  isMachine: true,
  observed: 'bootstrapping',
  job: { op: 'enroll', step: 'connect' },
}
const keyOf = (node: Node) => JSON.stringify(node)
const MEMORY_STATES: readonly ObservedState[] = ['waking', 'suspending', 'suspended']

/** The made transitions, as `running suspending`. */
const transitions = new Set<string>()

function moveTo(node: Node, observed: ObservedState | null): Node {
  if (observed === null || observed === node.observed) return node
  transitions.add(`${node.observed} ${observed}`)
  return { ...node, observed, suspendedAs: MEMORY_STATES.includes(observed) ? node.suspendedAs : null }
}

/** The situation while the next step runs. */
function claim(node: Node): Node | null {
  const next = plan(node)
  if (next === null) return null
  const { state } = findStage(next.op, next.step)
  const claimed = { ...moveTo(node, state), job: next }
  return state === 'suspended' && next.step === 'stop' ? { ...claimed, suspendedAs: 'stopped' } : claimed
}

/** The situations after the running step: its success first. */
function listOutcomes(node: Node): Node[] {
  if (node.job === null) return []
  const { op, step } = node.job
  const { finalState, failureState, failsIn = step } = OP_DEFINITIONS[op]
  const finish = (from: Node, state = finalState): Node => ({
    ...moveTo(from, state),
    hasLeftovers: op === 'delete' || op === 'clean_up' ? false : from.hasLeftovers,
    job: null,
  })
  const goTo = (from: Node, nextStep: Step | undefined): Node =>
    nextStep === undefined ? finish(from) : { ...from, job: { op, step: nextStep } }
  const following = nextStage(op, step)?.step
  const endMove = (from: Node, state: ObservedState): Node =>
    finish({ ...from, hasArchive: from.isPacked, hasLeftovers: true, isPacked: false }, state)
  const retried = goTo(node, findStage(op, step).retryFrom ?? step)
  const packedOr = (state: ObservedState) => (node.isPacked ? 'deep_sleep' : state)
  if (op === 'move' && step === 'relocate') {
    const relocated = { ...node, hasArchive: false }
    const moved = node.desired === 'suspended' ? finish(relocated, 'suspended') : goTo(relocated, 'start')
    return [moved, goTo(node, following), retried]
  }
  // The box was relocated: it is in the new region.
  if (op === 'move' && !node.hasArchive)
    return [
      following === undefined ? finish(node, 'running') : goTo(node, following),
      retried,
      finish(node, 'suspended'),
    ]
  if (op === 'move') {
    const succeeded =
      step === 'transfer' && node.isPacked
        ? [endMove(node, 'deep_sleep')]
        : step === 'unpack' && node.desired === 'suspended'
          ? [endMove(node, 'suspended')]
          : following === undefined
            ? [endMove(node, 'running')]
            : [goTo(node, following)]
    return [...succeeded, retried, endMove(node, packedOr('suspended'))]
  }
  const withoutArchive = op === 'sleep' ? { ...node, hasArchive: false, hasLeftovers: true } : node
  const failed = failureState && failsIn === step ? [finish(withoutArchive, failureState)] : []
  switch (step) {
    case 'freeze':
      return [finish({ ...node, suspendedAs: 'frozen' }, 'suspended'), goTo(node, following), retried]
    case 'stop': {
      const stopped: Node = { ...node, suspendedAs: 'stopped' }
      const packed = op === 'suspend' && node.hasArchive ? [finish(node, 'deep_sleep')] : []
      return [goTo(stopped, following), retried, ...packed]
    }
    case 'adjust':
      return [finish(node, 'running'), goTo(node, following), retried]
    case 'inspect':
      return [goTo(node, 'connect'), goTo(node, 'start'), retried]
    case 'start': {
      const withoutMemory = node.suspendedAs && ({ ...node, suspendedAs: 'stopped' } as const)
      return [
        goTo(node, following),
        ...(withoutMemory ? [goTo(withoutMemory, following)] : []),
        retried,
        ...failed,
      ]
    }
    case 'unpack':
      return [goTo({ ...node, hasArchive: false, hasLeftovers: true }, following), retried]
    default:
      return [goTo(node, following), retried, ...failed]
  }
}

/** What requests, schedules and monitors do to a box. */
function listChanges(node: Node): Node[] {
  const { desired, observed, suspendedAs, job } = node
  const isIdle = job === null || job.op === 'clean_up'
  const changes: Node[] = []
  if (node.isMachine) {
    if (desired !== 'terminated') changes.push({ ...node, desired: 'terminated' })
    if (observed === 'running' && desired === 'running' && isIdle)
      changes.push({ ...node, job: { op: 'reconnect', step: 'connect' } })
    return changes
  }
  if (desired !== 'terminated') changes.push(...DESIRED_STATES.map((state) => ({ ...node, desired: state })))
  if (observed === 'suspended' && desired === 'suspended' && isIdle) {
    if (suspendedAs === 'frozen') changes.push({ ...node, job: { op: 'stop', step: 'stop' } })
    const step = suspendedAs === 'frozen' ? 'stop' : 'archive'
    changes.push({ ...node, hasArchive: true, job: { op: 'sleep', step } })
  }
  if (observed === 'running' && desired === 'running' && isIdle)
    changes.push({ ...node, job: { op: 'recover', step: 'inspect' } })
  if (observed === 'running' && desired === 'running' && isIdle)
    changes.push({ ...node, job: { op: 'resize', step: 'adjust' } })
  if (
    (observed === 'deep_sleep' ? 'suspended' : observed) === desired &&
    isIdle &&
    desired !== 'terminated'
  ) {
    const isPacked = observed === 'deep_sleep'
    const job = { op: 'move', step: isPacked ? 'transfer' : 'stop' } as const
    changes.push({ ...node, job, hasArchive: true, isPacked })
  }
  if (['running', 'degraded', 'waking'].includes(observed)) {
    // Ctrl-C of the coordinator.
    const suspending: Node = { ...moveTo(node, 'suspending'), suspendedAs: 'stopped' }
    const kept = job?.op === 'move' || job?.op === 'delete' ? job : null
    changes.push({ ...moveTo(suspending, 'suspended'), job: kept })
    if (observed === 'waking' && node.hasArchive)
      changes.push({ ...moveTo(suspending, 'deep_sleep'), job: kept })
  }
  return changes
}

/** Every situation that a box can get into. */
function walk(): Node[] {
  const queue = [REQUESTED, ENROLLED]
  const nodes = new Map(queue.map((node) => [keyOf(node), node]))
  for (let node = queue.pop(); node; node = queue.pop()) {
    const claimed = claim(node)
    const settled = claimed === null ? [{ ...node, job: null }] : [claimed, ...listOutcomes(claimed)]
    for (const next of [...settled, ...listChanges(node)]) {
      if (nodes.has(keyOf(next))) continue
      nodes.set(keyOf(next), next)
      queue.push(next)
    }
  }
  return [...nodes.values()]
}

const nodes = walk()

t.test('the operations make exactly the allowed transitions', async (t) => {
  const allowed = Object.entries(ALLOWED_TRANSITIONS).flatMap(([from, states]) =>
    states.map((to) => `${from} ${to}`),
  )
  t.same([...transitions].sort(), allowed.sort())
})

t.test('every state except terminated can become terminating or terminated', async (t) => {
  for (const [state, following] of Object.entries(ALLOWED_TRANSITIONS)) {
    if (state === 'terminated') t.same(following, [])
    else if (state === 'terminating') t.same(following, ['terminated'])
    else t.ok(following.includes('terminating'), state)
  }
})

t.test('a machine is never suspended, resized, moved or started again', async (t) => {
  const machines = nodes.filter(({ isMachine }) => isMachine)
  const states = new Set(machines.map(({ observed }) => observed))
  t.same([...states].sort(), ['bootstrapping', 'degraded', 'running', 'terminated', 'terminating'])
  const steps = new Set(machines.flatMap(({ job }) => (job === null ? [] : [`${job.op} ${job.step}`])))
  t.same([...steps].sort(), ['delete collect', 'delete destroy', 'enroll connect', 'reconnect connect'])
})

t.test('a step is retried in the state in which it runs', async (t) => {
  for (const [op, { stages }] of Object.entries(OP_DEFINITIONS))
    for (const { step, state, retryFrom = step } of stages)
      t.equal(findStage(op as JobOp, retryFrom).state, state, `${op} ${step}`)
})

t.test('the steps lead to the desired state from every situation', async (t) => {
  t.ok(nodes.length > 200, `${nodes.length} situations`)
  for (const start of nodes) {
    let node = start
    let count = 0
    for (let claimed = claim(node); claimed && count < 30; claimed = claim(node)) {
      node = listOutcomes(claimed)[0] ?? claimed
      count += 1
    }
    const { observed, hasLeftovers } = node
    const state = observed === 'deep_sleep' ? 'suspended' : observed
    const hasFailed = observed === 'provision_failed' && start.desired !== 'terminated'
    const isDesired = state === start.desired || hasFailed || start.observed === 'terminated'
    if (count === 30 || !isDesired || hasLeftovers)
      t.fail(`${keyOf(start)} ends in ${keyOf(node)} after ${count} steps`)
  }
})
