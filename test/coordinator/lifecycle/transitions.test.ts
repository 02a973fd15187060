// The state machine: checks every combination of desired state, observed state and job.
import t from 'tap'
import { type NextStep, plan, type Situation } from '../../../coordinator/lifecycle/plan.ts'
import {
  ALLOWED_TRANSITIONS,
  findStage,
  nextStage,
  OP_DEFINITIONS,
  STEPS,
} from '../../../coordinator/lifecycle/transitions.ts'
import { DESIRED_STATES, JOB_OPS, type JobOp, OBSERVED_STATES } from '../../../shared/api/boxes.ts'

const situations: Situation[] = DESIRED_STATES.flatMap((desired) =>
  OBSERVED_STATES.flatMap((observed) => [
    { desired, observed, job: null },
    ...JOB_OPS.flatMap((op) =>
      OP_DEFINITIONS[op].stages.map(({ step }) => ({ desired, observed, job: { op, step } })),
    ),
  ]),
)
const describeSituation = ({ desired, observed, job }: Situation) =>
  `${observed} → ${desired}, ${job ? `job ${job.op} ${job.step}` : 'no job'}`

t.test('each operation passes only through allowed transitions', async (t) => {
  for (const [op, { stages, finalState, failureState }] of Object.entries(OP_DEFINITIONS)) {
    const states = [...stages.map(({ state }) => state), finalState]
    for (const [i, state] of states.slice(1).entries()) {
      const previous = states[i]
      if (previous && previous !== state)
        t.ok(ALLOWED_TRANSITIONS[previous].includes(state), `${op}: ${previous} → ${state}`)
    }
    for (const { state, retryFrom } of stages) {
      if (failureState) t.ok(ALLOWED_TRANSITIONS[state].includes(failureState), `${op} can fail in ${state}`)
      if (retryFrom) t.equal(findStage(op as JobOp, retryFrom).state, state, `${op} is retried in ${state}`)
    }
  }
})

t.test('every state except terminated can become terminating or terminated', async (t) => {
  for (const state of OBSERVED_STATES) {
    if (state === 'terminated') t.same(ALLOWED_TRANSITIONS[state], [])
    else if (state === 'terminating') t.same(ALLOWED_TRANSITIONS[state], ['terminated'])
    else t.ok(ALLOWED_TRANSITIONS[state].includes('terminating'), state)
  }
})

t.test('the planned step runs in a state that the box may enter', async (t) => {
  for (const situation of situations) {
    const next = plan(situation)
    if (!next || !isReachable(situation)) continue
    t.ok(STEPS.includes(next.step))
    const { state } = findStage(next.op, next.step)
    t.ok(
      state === situation.observed || ALLOWED_TRANSITIONS[situation.observed].includes(state),
      `${describeSituation(situation)}: ${next.op} ${next.step} runs in ${state}`,
    )
  }
})

t.test('the planned steps lead to the desired state from every reachable situation', async (t) => {
  for (const situation of situations) {
    if (!isReachable(situation)) continue
    let { observed, job } = situation
    const { desired } = situation
    let steps = 0
    for (let next = plan({ desired, observed, job }); next; next = plan({ desired, observed, job })) {
      ;({ observed, job } = completeStep(next))
      steps += 1
      if (steps > 20) break
    }
    const reached = steps > 20 ? 'endless loop' : observed
    const isFinal = desired !== 'terminated' && ['provision_failed', 'terminated'].includes(observed)
    const expected = isFinal ? observed : desired
    const actual = reached === 'deep_sleep' ? 'suspended' : reached
    t.equal(actual, expected, describeSituation(situation))
  }
})

t.test('plans the expected step when the desired state changes during a job', async (t) => {
  const planFor = (
    desired: Situation['desired'],
    observed: Situation['observed'],
    job: Situation['job'] = null,
  ) => plan({ desired, observed, job })
  t.equal(planFor('running', 'running'), null)
  t.equal(planFor('suspended', 'suspended'), null)
  t.same(planFor('running', 'suspending', { op: 'suspend', step: 'stop' }), { op: 'suspend', step: 'stop' })
  t.same(planFor('suspended', 'waking', { op: 'wake', step: 'connect' }), { op: 'suspend', step: 'stop' })
  t.same(planFor('suspended', 'bootstrapping', { op: 'create', step: 'connect' }), {
    op: 'create',
    step: 'connect',
  })
  t.same(planFor('terminated', 'bootstrapping', { op: 'create', step: 'start' }), {
    op: 'delete',
    step: 'destroy',
  })
  t.equal(planFor('running', 'provision_failed'), null)
  t.equal(
    planFor('running', 'running', { op: 'suspend', step: 'stop' }),
    null,
    'a suspend can be cancelled before it starts',
  )
})

/** Excludes states that no operation leads to yet, and combinations of state and job that cannot occur. */
function isReachable({ desired, observed, job }: Situation): boolean {
  if (observed === 'resizing' || observed === 'migrating') return desired === 'terminated' && job === null
  if (observed === 'terminated' || observed === 'provision_failed') return job === null
  if (observed === 'terminating') return desired === 'terminated' && (job === null || job.op === 'delete')
  if (!job) return true
  const [firstStage] = OP_DEFINITIONS[job.op].stages
  return (
    findStage(job.op, job.step).state === observed ||
    (job.step === firstStage.step && ALLOWED_TRANSITIONS[observed].includes(firstStage.state))
  )
}

/** The situation after the step has succeeded. */
function completeStep({ op, step }: NextStep): Pick<Situation, 'observed' | 'job'> {
  const next = nextStage(op, step)
  return next
    ? { observed: findStage(op, step).state, job: { op, step: next.step } }
    : { observed: OP_DEFINITIONS[op].finalState, job: null }
}
