// A run starts the coding agent, numbers its events and ends with a status.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../../support/wait-until.ts'
import { createTestRuns } from './support.ts'

t.test('a run has events, a session and the status done', async (t) => {
  const { start, waitForEnd, readPage, runs } = await createTestRuns(t)
  const started = await start('normal.sh', { resumedFrom: 's-0', prompt: 'What is this?' })
  t.match(started, { status: 'running', sessionId: null, finishedAt: null, promptPreview: 'What is this?' })
  t.match(await waitForEnd(started.id), {
    ...{ status: 'done', error: null, exitCode: 0, sessionId: 's-1', eventCount: 4, pid: started.pid },
    finishedAt: Number,
  })
  const { events, next, finished, run } = await readPage(started.id)
  t.match(events, [
    { seq: 1, type: 'session', text: 's-1', tool: null, raw: { session: 's-1' } },
    { seq: 2, type: 'tool', text: 'running', tool: { name: 'shell', input: { command: 'ls' } } },
    { seq: 3, type: 'text', text: 'resumed s-0' },
    { seq: 4, type: 'done', text: null },
  ])
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

t.test('a run that cannot start leaves nothing', async (t) => {
  const { start, runs, dir } = await createTestRuns(t)
  await t.rejects(start('normal.sh', { cwd: 'missing' }), { code: 'not_found' })
  t.same(runs.list(), [])
  await waitUntil('the directory is removed', () => readdirSync(join(dir, 'runs')).length === 0)
})
