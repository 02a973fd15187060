// An interrupt ends the coding agent and what its tools left running.
import t, { type Test } from 'tap'
import { isNativeRunner } from '../../exec/detached/support.ts'
import { isAlive, waitForPid } from '../../exec/support.ts'
import { createTestRuns, type TestRuns } from './support.ts'

// Some tests wait for grace periods.
t.jobs = 4

async function startAndWait(t: Test, model: string, fields = {}): Promise<TestRuns & { id: string }> {
  const agent = await createTestRuns(t)
  const { id } = await agent.start(model, fields)
  await agent.readPage(id, 0, 1000, 15_000)
  return { ...agent, id }
}

t.test('an interrupt is recorded, with its cause', async (t) => {
  const { runs, get, id, readAll } = await startAndWait(t, 'wait.sh')
  t.same(await runs.interrupt(id, 'Interrupted by a request.'), { wasRunning: true, signal: 'INT' })
  t.match(get(id), {
    status: 'interrupted',
    error: 'Interrupted by a request.',
    sessionId: 's-1',
    eventCount: 2,
    exitCode: isNativeRunner ? null : 130,
  })
  t.match(await readAll(id), [{ type: 'session' }, { text: 'before' }])
})

t.test('sends the signal of the provider', async (t) => {
  const { runs, id } = await startAndWait(t, 'wait.sh', { provider: 'pi' })
  t.same(await runs.interrupt(id, 'x'), { wasRunning: true, signal: 'TERM' })
})

t.test('a coding agent that reports success after the signal is interrupted', async (t) => {
  const { runs, get, id, readAll } = await startAndWait(t, 'polite.sh')
  await runs.interrupt(id, 'x')
  t.match(get(id), { status: 'interrupted', exitCode: 0 })
  t.match(await readAll(id), [{ text: 'ready' }, { type: 'done' }], 'its final output is read')
})

t.test('what an interrupted coding agent leaves running is terminated', async (t) => {
  const { runs, get, id, home } = await startAndWait(t, 'tool.sh')
  const pid = await waitForPid(home, 'tool')
  t.same(await runs.interrupt(id, 'x'), { wasRunning: true, signal: 'INT' })
  t.notOk(isAlive(pid))
  t.match(get(id), { status: 'interrupted', eventCount: 2 })
})

t.test('what a coding agent leaves running after a normal end continues', async (t) => {
  const { waitForEnd, runs, id, home } = await startAndWait(t, 'background.sh')
  t.match(await waitForEnd(id), { status: 'done' })
  const pid = await waitForPid(home, 'tool')
  t.same(await runs.interrupt(id, 'x'), { wasRunning: false, signal: null })
  t.ok(isAlive(pid))
})

t.test('a background process that writes without end does not prolong the run', async (t) => {
  const { waitForEnd, id, home, readPage, get } = await startAndWait(t, 'chatty-background.sh')
  t.match(await waitForEnd(id), { status: 'done' })
  t.ok(isAlive(await waitForPid(home, 'tool')))
  const { eventCount } = get(id)
  t.match(await readPage(id, eventCount), { events: { length: 0 }, next: eventCount, finished: true })
})

t.test('a coding agent that ignores INT and TERM is killed', async (t) => {
  const { runs, get, id } = await startAndWait(t, 'stubborn.sh')
  t.same(await runs.interrupt(id, 'x'), { wasRunning: true, signal: 'KILL' })
  t.match(get(id), { status: 'interrupted', error: 'x' })
})

t.test('concurrent interrupts have the same result, later ones no effect', async (t) => {
  const { runs, get, id } = await startAndWait(t, 'wait.sh')
  const interrupted = { wasRunning: true, signal: 'INT' }
  t.same(await Promise.all([runs.interrupt(id, 'first'), runs.interrupt(id, 'second')]), [
    interrupted,
    interrupted,
  ])
  t.same(await runs.interrupt(id, 'third'), { wasRunning: false, signal: null })
  t.match(get(id), { error: 'first' })
})

t.test('a run whose start is in progress is interrupted', async (t) => {
  const { runs, start, get } = await createTestRuns(t)
  const id = 'run_0123456789abcdef01234567'
  const started = start('stubborn.sh', { id, provider: 'claude' })
  t.match(await runs.interrupt(id, 'x'), { wasRunning: true })
  t.equal((await started).id, id)
  t.match(get(id), { status: 'interrupted' })
})

t.test('an unknown run is not found', async (t) => {
  const { runs } = await createTestRuns(t)
  await t.rejects(runs.interrupt('run_0123456789abcdef01234567', 'x'), { code: 'not_found' })
})
