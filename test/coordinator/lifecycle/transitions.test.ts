// The table of states, walked completely.
import t from 'tap'
import { type NextStep, plan, type Situation } from '../../../coordinator/lifecycle/plan.ts'
import { FOLLOWS, OPS, STEPS, stageAfter, stageOf } from '../../../coordinator/lifecycle/transitions.ts'
import { DESIRED_STATES, JOB_OPS, type JobOp, OBSERVED_STATES } from '../../../shared/api/boxes.ts'

const situations: Situation[] = DESIRED_STATES.flatMap((desired) =>
  OBSERVED_STATES.flatMap((observed) => [
    { desired, observed, job: null },
    ...JOB_OPS.flatMap((op) => OPS[op].stages.map(({ step }) => ({ desired, observed, job: { op, step } }))),
  ]),
)
const nameOf = ({ desired, observed, job }: Situation) =>
  `${observed} → ${desired}, ${job?.op ?? 'no'} ${job?.step ?? 'job'}`

t.test('each operation passes only through states that may follow each other', async (t) => {
  for (const [op, { stages, end, gaveUp }] of Object.entries(OPS)) {
    const states = [...stages.map(({ state }) => state), end]
    for (const [i, state] of states.slice(1).entries()) {
      const before = states[i]
      if (before && before !== state) t.ok(FOLLOWS[before].includes(state), `${op}: ${before} → ${state}`)
    }
    for (const { state, retryFrom } of stages) {
      if (gaveUp) t.ok(FOLLOWS[state].includes(gaveUp), `${op} can be given up while ${state}`)
      if (retryFrom) t.equal(stageOf(op as JobOp, retryFrom).state, state, `${op} is tried again in ${state}`)
    }
  }
})

t.test('every state can be left for terminated, and nothing leaves that', async (t) => {
  for (const state of OBSERVED_STATES) {
    if (state === 'terminated') t.same(FOLLOWS[state], [])
    else if (state === 'terminating') t.same(FOLLOWS[state], ['terminated'])
    else t.ok(FOLLOWS[state].includes('terminating'), state)
  }
})

t.test('whatever the situation, the next step is one of its operation and may be entered', async (t) => {
  for (const situation of situations) {
    const next = plan(situation)
    if (!next || !reachable(situation)) continue
    t.ok(STEPS.includes(next.step))
    const { state } = stageOf(next.op, next.step)
    t.ok(
      state === situation.observed || FOLLOWS[situation.observed].includes(state),
      `${nameOf(situation)}: ${next.op} ${next.step} makes it ${state}`,
    )
  }
})

t.test('following the plan ends as desired, from every state that comes about', async (t) => {
  for (const situation of situations) {
    if (!reachable(situation)) continue
    let { observed, job } = situation
    const { desired } = situation
    let steps = 0
    for (let next = plan({ desired, observed, job }); next; next = plan({ desired, observed, job })) {
      ;({ observed, job } = after(next))
      steps += 1
      if (steps > 20) break
    }
    const settled = steps > 20 ? 'going round' : observed
    const hopeless = desired !== 'terminated' && ['provision_failed', 'terminated'].includes(observed)
    const expected = hopeless ? observed : desired
    const asleep = settled === 'deep_sleep' ? 'suspended' : settled
    t.equal(asleep, expected, nameOf(situation))
  }
})

t.test('decisions that a user notices', async (t) => {
  const next = (
    desired: Situation['desired'],
    observed: Situation['observed'],
    job: Situation['job'] = null,
  ) => plan({ desired, observed, job })
  t.equal(next('running', 'running'), null)
  t.equal(next('suspended', 'suspended'), null)
  t.same(next('running', 'suspending', { op: 'suspend', step: 'stop' }), { op: 'suspend', step: 'stop' })
  t.same(next('suspended', 'waking', { op: 'wake', step: 'connect' }), { op: 'suspend', step: 'stop' })
  t.same(next('suspended', 'bootstrapping', { op: 'create', step: 'connect' }), {
    op: 'create',
    step: 'connect',
  })
  t.same(next('terminated', 'bootstrapping', { op: 'create', step: 'start' }), {
    op: 'delete',
    step: 'destroy',
  })
  t.equal(next('running', 'provision_failed'), null)
  t.equal(next('running', 'running', { op: 'suspend', step: 'stop' }), null, 'a suspend taken back in time')
})

/** States nothing leads to yet, and jobs that do not belong to a state, do not come about. */
function reachable({ desired, observed, job }: Situation): boolean {
  if (observed === 'resizing' || observed === 'migrating') return desired === 'terminated' && job === null
  if (observed === 'terminated' || observed === 'provision_failed') return job === null
  if (observed === 'terminating') return desired === 'terminated' && (job === null || job.op === 'delete')
  if (!job) return true
  const first = OPS[job.op].stages[0].state
  return (
    stageOf(job.op, job.step).state === observed ||
    (job.step === OPS[job.op].stages[0].step && FOLLOWS[observed].includes(first))
  )
}

/** The situation once the step is done. */
function after({ op, step }: NextStep): Pick<Situation, 'observed' | 'job'> {
  const next = stageAfter(op, step)
  return next
    ? { observed: stageOf(op, step).state, job: { op, step: next.step } }
    : { observed: OPS[op].end, job: null }
}
