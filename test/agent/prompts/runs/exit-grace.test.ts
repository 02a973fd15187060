// A coding agent that has reported its end and does not exit is terminated after a grace time. The timers are injected.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { INITIAL_MAPPER_STATE, type Outcome } from '../../../../agent/prompts/providers/types.ts'
import { EXIT_GRACE_MS, findExitGrace, WORK_GRACE_MS } from '../../../../agent/prompts/runs/exit-grace.ts'
import type { StartTimer } from '../../../../agent/running-clock.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { isAlive, waitForPid } from '../../exec/support.ts'
import { createTestRuns, reopen, type TestRuns } from './support.ts'

const DONE: Outcome = { status: 'done' }

t.test('the grace time depends on the work that is known to be in progress', async (t) => {
  const state = { ...INITIAL_MAPPER_STATE, hasContent: true }
  t.equal(findExitGrace(state), null, 'no final event')
  t.equal(findExitGrace({ ...state, hasBackgroundTasks: true }), null)
  t.equal(findExitGrace({ ...state, outcome: DONE }), EXIT_GRACE_MS)
  t.equal(findExitGrace({ ...state, outcome: { status: 'failed', message: 'x' } }), EXIT_GRACE_MS)
  t.equal(findExitGrace({ ...state, outcome: DONE, hasBackgroundTasks: true }), WORK_GRACE_MS)
  t.equal(findExitGrace({ ...state, outcome: DONE, isContinued: true }), WORK_GRACE_MS)
})

function createTimers() {
  const started: { ms: number; callback: () => void; isStopped: boolean }[] = []
  const startTimer: StartTimer = (callback, ms) => {
    const timer = { ms, callback, isStopped: false }
    started.push(timer)
    return () => {
      timer.isStopped = true
    }
  }
  const active = () => started.filter(({ isStopped }) => !isStopped)
  return {
    startTimer,
    /** The lengths of the timers that have not been stopped, in milliseconds. */
    lengths: () => active().map(({ ms }) => ms),
    started,
    fire: () => active().at(-1)?.callback(),
  }
}

async function startLingering(t: Test) {
  const timers = createTimers()
  const agent = await createTestRuns(t, { startTimer: timers.startTimer })
  const { id } = await agent.start('lingering.sh')
  await waitForEvents(agent, id, 2)
  return { agent, id, timers }
}
const waitForEvents = ({ get }: TestRuns, id: string, count: number) =>
  waitUntil(`${count} events`, () => get(id).eventCount >= count)
const touch = ({ home }: TestRuns, name: string) => writeFileSync(join(home, name), '')

t.test('a coding agent that does not exit is terminated, and its run has the reported status', async (t) => {
  const { agent, id, timers } = await startLingering(t)
  t.same(timers.lengths(), [EXIT_GRACE_MS])
  t.match(agent.get(id), { status: 'running' })
  const pid = await waitForPid(agent.home, 'tool')
  timers.fire()
  t.match(await agent.waitForEnd(id), { status: 'done', error: null, exitCode: 1 })
  t.match(await agent.readAll(id), [{}, { type: 'done' }, { type: 'error', text: 'aborted' }])
  t.notOk(isAlive(pid), 'the processes of its tools are terminated')
  t.same(timers.lengths(), [])
  t.match((await reopen(t, agent)).get(id), { status: 'done' })
})

t.test('a later event extends the grace time, other output of its processes does not', async (t) => {
  const { agent, id, timers } = await startLingering(t)
  touch(agent, 'go')
  await waitForEvents(agent, id, 4)
  t.same(timers.lengths(), [WORK_GRACE_MS], 'another turn')
  touch(agent, 'end')
  await waitForEvents(agent, id, 5)
  t.same(timers.lengths(), [EXIT_GRACE_MS])
  t.equal(
    timers.started.filter(({ ms }) => ms === EXIT_GRACE_MS).length,
    2,
    'the line that is not an event starts no timer',
  )
  timers.fire()
  t.match(await agent.waitForEnd(id), { status: 'done' })
})

t.test('a turn without an end after a success has no result', async (t) => {
  const { agent, id, timers } = await startLingering(t)
  touch(agent, 'go')
  await waitForEvents(agent, id, 4)
  timers.fire()
  t.match(await agent.waitForEnd(id), { status: 'failed', error: 'The coding agent ended without a result.' })
})

t.test('a restarted agent applies the grace time', async (t) => {
  const { agent, id, timers } = await startLingering(t)
  const next = createTimers()
  const second = await reopen(t, agent, { startTimer: next.startTimer })
  t.same(timers.lengths(), [], 'the agent that has stopped does not terminate the run')
  await waitUntil('the grace time is started', () => next.lengths().length > 0)
  t.same(next.lengths(), [EXIT_GRACE_MS])
  next.fire()
  t.match(await second.waitForEnd(id), { status: 'done' })
})

t.test('an interrupt during the grace time', async (t) => {
  const { agent, id, timers } = await startLingering(t)
  t.same(await agent.runs.interrupt(id, 'x'), { wasRunning: true, signal: 'INT' })
  t.match(agent.get(id), { status: 'interrupted', error: 'x' })
  t.same(timers.lengths(), [])
})

t.test('a coding agent without a final event has no grace time', async (t) => {
  const timers = createTimers()
  const agent = await createTestRuns(t, { startTimer: timers.startTimer })
  const { id } = await agent.start('wait.sh')
  await waitForEvents(agent, id, 2)
  t.same(timers.started, [])
  touch(agent, 'go')
  t.match(await agent.waitForEnd(id), { status: 'done' })
  t.same(timers.lengths(), [])
})
