// A run starts the coding agent, numbers its events and ends with a status.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { RunState } from '../../../../agent/prompts/types.ts'
import { measureHeapBytes } from '../../../support/heap.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createRequest, createTestRuns, fakeDetector, reopen } from './support.ts'

t.test('a run has events, a session and the status done', async (t) => {
  const { start, waitForEnd, readPage, runs } = await createTestRuns(t)
  const started = await start('normal.sh', { resumedFrom: 's-0', prompt: 'What is this?' })
  t.match(started, { status: 'running', sessionId: null, finishedAt: null, promptPreview: 'What is this?' })
  t.match(await waitForEnd(started.id), {
    status: 'done',
    error: null,
    exitCode: 0,
    sessionId: 's-1',
    eventCount: 4,
    pid: started.pid,
    finishedAt: Number,
  })
  const { events, next, finished, run } = await readPage(started.id)
  t.match(events, [
    { seq: 1, type: 'session', text: 's-1', tool: null, raw: { session: 's-1' } },
    { seq: 2, type: 'tool', text: 'running', tool: { name: 'shell', input: { command: 'ls' } } },
    { seq: 3, type: 'text', text: 'resumed s-0' },
    { seq: 4, type: 'done', text: null },
  ])
  for (const { at } of events)
    t.ok(Date.parse(at) >= started.startedAt && Date.parse(at) <= Date.parse(run.finishedAt ?? ''))
  t.match({ next, finished, run }, { next: 4, finished: true, run: { status: 'done', eventCount: 4 } })
  t.match((await runs.readStatus(started.id)).run, { prompt: 'What is this?' })
})

t.test('follows a run in progress', async (t) => {
  const { start, readPage, home, get, waitForEnd } = await createTestRuns(t)
  const { id } = await start('wait.sh')
  const first = await readPage(id, 1, 1000, 15_000)
  t.match(first, { events: [{ seq: 2, text: 'before' }], next: 2, finished: false })
  const waiting = readPage(id, 2, 1000, 15_000)
  t.match(get(id), { status: 'running', sessionId: 's-1', eventCount: 2 })
  writeFileSync(join(home, 'go'), '')
  t.match(await waiting, { events: [{ seq: 3, text: 'after' }] })
  await waitForEnd(id)
  t.match(await readPage(id, 3), { events: [{ seq: 4, type: 'done' }], finished: true })
})

t.test('the whole prompt arrives on stdin', async (t) => {
  const { start, readAll } = await createTestRuns(t)
  const prompt = 'ü'.repeat(256 * 1024)
  const { id } = await start('hash.sh', { prompt })
  const hash = createHash('sha256').update(prompt).digest('hex')
  t.match(await readAll(id), [{ text: hash }, { type: 'done' }])
})

t.test('the directory for temporary files is deleted at the end', async (t) => {
  const { start, home, dir, waitForEnd } = await createTestRuns(t)
  const { id } = await start('wait.sh')
  const tmpDir = join(dir, 'runs', id, 'tmp')
  t.ok(existsSync(tmpDir))
  writeFileSync(join(tmpDir, 'leftover'), '')
  writeFileSync(join(home, 'go'), '')
  await waitForEnd(id)
  t.notOk(existsSync(tmpDir))
})

t.test('a repeated start returns the same run', async (t) => {
  const { start, processes } = await createTestRuns(t)
  const { id } = await start('wait.sh')
  const [again] = await Promise.all([start('wait.sh', { id }), start('wait.sh', { id })])
  t.equal(again.id, id)
  t.equal(processes.list().length, 1)
})

t.test(
  'runs that start in the same millisecond have an order, also when the clock is set back',
  async (t) => {
    let time = Date.now()
    const options = { clock: { now: () => time } }
    const agent = await createTestRuns(t, options)
    const ids = []
    for (let count = 0; count < 3; count++) {
      const { id } = await agent.start('normal.sh')
      await agent.waitForEnd(id)
      ids.unshift(id)
    }
    time -= 1000
    const second = await reopen(t, agent, options)
    ids.unshift((await second.start('normal.sh')).id)
    t.same(
      second.runs.list().map(({ id }) => id),
      ids,
    )
    const sequences = second.runs.list().map(({ sequence }) => sequence)
    t.same(
      sequences,
      Array.from(sequences, (_, index) => second.runs.sequence() - index),
    )
  },
)

t.test('a run that cannot start leaves nothing', async (t) => {
  const { start, runs, dir } = await createTestRuns(t)
  await t.rejects(start('normal.sh', { cwd: 'missing' }), { code: 'not_found' })
  t.same(runs.list(), [])
  await waitUntil('the directory is removed', () => readdirSync(join(dir, 'runs')).length === 0)
})

t.test(
  'a prompt that the coding agent would take as a command is changed only for the coding agent',
  async (t) => {
    const { start, readAll, runs } = await createTestRuns(t)
    const { id } = await start('hash.sh', { prompt: '/clear' })
    t.match(await readAll(id), [{ text: createHash('sha256').update(' /clear').digest('hex') }, {}])
    t.match((await runs.readStatus(id)).run, { prompt: '/clear' })
  },
)

t.test('a long prompt is shortened, except in the status of its run', async (t) => {
  const { start, readPage, runs, get } = await createTestRuns(t)
  const prompt = `${'😀'.repeat(2000)}`
  const { id } = await start('normal.sh', { prompt })
  t.equal((await runs.readStatus(id)).run.prompt, prompt)
  t.ok(get(id).promptPreview.length <= 2048)
  t.equal((await readPage(id)).run.prompt, get(id).promptPreview)
})

t.test('the coding agent gets the variables of the box', async (t) => {
  const { start, readAll } = await createTestRuns(t)
  const { id } = await start('variable.sh', { boxEnv: { TEST_KEY: `it's $HOME` } })
  t.match(await readAll(id), [{ text: `it's $HOME` }])
})

t.test('subscribers are notified of the start, the events and the end', async (t) => {
  const { start, runs, waitForEnd, home } = await createTestRuns(t)
  const states: RunState[] = []
  const unsubscribe = runs.subscribe((run) => states.push(run))
  runs.subscribe(() => {
    throw new Error('a subscriber that fails')
  })
  const { id } = await start('wait.sh')
  await waitUntil('the events are read', () => states.at(-1)?.eventCount === 2)
  t.match(states[0], { id, status: 'running' })
  t.match(states.at(-1), { status: 'running', sessionId: 's-1' })
  writeFileSync(join(home, 'go'), '')
  await waitForEnd(id)
  t.match(states.at(-1), { status: 'done', eventCount: 4 })
  unsubscribe()
  const count = states.length
  await waitForEnd((await start('normal.sh')).id)
  t.equal(states.length, count)
})

t.test(
  'a wait for events ends when the client disconnects, at its time limit, and when the agent stops',
  async (t) => {
    const { start, readPage, runs, close } = await createTestRuns(t)
    const { id } = await start('wait.sh')
    await readPage(id, 1, 10, 15_000)
    const controller = new AbortController()
    const options = { after: 2, limit: 10, waitMs: 15_000 }
    const aborted = runs.readEvents(id, { ...options, signal: controller.signal })
    const waiting = readPage(id, 2, 10, 15_000)
    t.match(await readPage(id, 2, 10, 50), { events: { length: 0 }, next: 2, finished: false })
    controller.abort()
    t.match(await aborted, { events: { length: 0 }, next: 2 })
    await close()
    t.match(await waiting, { events: { length: 0 }, next: 2, finished: false })
  },
)

t.test('a run that could not be started is recorded as failed', async (t) => {
  const agent = await createTestRuns(t)
  const { boxEnv: _, ...request } = createRequest('normal.sh')
  const states: RunState[] = []
  agent.runs.subscribe((run) => states.push(run))
  const result = { status: 'failed', error: 'Not signed in.' } as const
  const recorded = await agent.runs.recordUnstarted(request, result)
  t.match(recorded, { status: 'failed', error: 'Not signed in.', pid: null, exitCode: null, eventCount: 0 })
  t.same(states, [recorded])
  t.same(await agent.runs.recordUnstarted(request, { ...result, error: 'again' }), recorded)
  t.match(await agent.readPage(request.id), { events: { length: 0 }, next: 0, finished: true })
  t.match(await agent.runs.readStatus(request.id), { run: { prompt: 'Hello' }, stderr: '', logPath: '' })
  const second = await reopen(t, agent)
  t.same(second.runs.list(), [recorded])
})

t.test('the agent stops while a coding agent is being installed', async (t) => {
  const installing = Promise.withResolvers<never>()
  const agent = await createTestRuns(t, { detector: { ...fakeDetector, resolve: () => installing.promise } })
  const rejected = t.rejects(agent.start('normal.sh'), { code: 'exec_failed', message: /stopping/ })
  await agent.close()
  await rejected
  installing.reject(new Error('terminated'))
})

t.test('a start is cancelled while a coding agent is being installed', async (t) => {
  const installing = Promise.withResolvers<never>()
  const agent = await createTestRuns(t, { detector: { ...fakeDetector, resolve: () => installing.promise } })
  const controller = new AbortController()
  const { boxEnv, ...request } = createRequest('normal.sh')
  const starting = agent.runs.start({ ...request, boxEnv }, controller.signal)
  controller.abort('The run was interrupted.')
  t.equal(await starting.catch((error: unknown) => error), 'The run was interrupted.')
  t.same(agent.runs.list(), [])
  const result = { status: 'interrupted', error: 'The run was interrupted.' } as const
  const recorded = await agent.runs.recordUnstarted(request, result)
  t.match(recorded, { ...result, pid: null, finishedAt: Number })
  t.match(await agent.readPage(request.id), { events: { length: 0 }, finished: true })
  installing.reject(new Error('The installation has failed.'))
  await agent.close()
})

t.test('a hundred ended runs need little memory', async (t) => {
  const { start, waitForEnd } = await createTestRuns(t)
  const runTen = async () => {
    const started = await Promise.all(Array.from({ length: 10 }, () => start('normal.sh')))
    for (const { id } of started) await waitForEnd(id)
  }
  await runTen()
  const before = await measureHeapBytes()
  for (let round = 0; round < 10; round++) await runTen()
  const bytes = (await measureHeapBytes()) - before
  t.ok(bytes < 1024 * 1024, `${bytes} bytes`)
})
