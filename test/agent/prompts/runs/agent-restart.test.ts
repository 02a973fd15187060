// Runs survive a restart of the agent. The next agent continues the numbers of events and finds the true status.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readRecord, toProcessId } from '../../../../agent/prompts/runs/run-record.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { isNativeRunner } from '../../exec/detached/support.ts'
import { isAlive, waitForPid } from '../../exec/support.ts'
import { createRequest, createTestRuns, openRuns, reopen, type TestRuns } from './support.ts'

// One test waits for grace periods.
t.jobs = 3

const getRunDir = ({ dir }: TestRuns, id: string) => join(dir, 'runs', id)
const release = ({ home }: TestRuns) => writeFileSync(join(home, 'go'), '')
const waitForExitRecord = ({ dir }: TestRuns, id: string) =>
  waitUntil('the exit is recorded', () =>
    readdirSync(join(dir, 'processes', toProcessId(id))).includes('exit'),
  )

t.test('a run continues, and its events have no gap and no double', async (t) => {
  const first = await createTestRuns(t)
  const { id, pid, startedAt } = await first.start('count.sh', { parent: 'run_0123456789abcdef01234567' })
  let agent = first
  let after = 0
  const events: { seq: number; text: string | null }[] = []
  for (let round = 0; round < 4; round++) {
    const page = await agent.readPage(id, after, 300, 15_000)
    events.push(...page.events)
    after = page.next
    agent = await reopen(t, agent)
    t.match(agent.get(id), { status: 'running', pid, startedAt, sessionId: 's-1' })
    t.ok(agent.get(id).eventCount >= after, 'the published events are counted from the beginning')
  }
  release(agent)
  t.match(await agent.waitForEnd(id), { status: 'done', parent: 'run_0123456789abcdef01234567' })
  for (let finished = false; !finished; ) {
    const page = await agent.readPage(id, after, 1000)
    events.push(...page.events)
    after = page.next
    finished = page.finished
  }
  t.same(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
  )
  const texts = events.slice(1, -1).map(({ text }) => text)
  t.same(
    texts,
    texts.map((_, index) => String(index)),
  )
  t.same(
    (await agent.readAll(id)).map(({ seq }) => seq),
    events.map(({ seq }) => seq),
  )
})

t.test('a run that ended while no agent ran', async (t) => {
  const first = await createTestRuns(t)
  const { id } = await first.start('wait.sh')
  await first.close()
  release(first)
  await waitForExitRecord(first, id)
  const second = await openRuns(t, first.home)
  t.match(await second.waitForEnd(id), { status: 'done', exitCode: 0, sessionId: 's-1', eventCount: 4 })
  t.equal((await second.readAll(id)).length, 4)
})

t.test('ended runs are restored, newest first, without reading their output', async (t) => {
  const first = await createTestRuns(t)
  const ids: string[] = []
  for (const model of ['normal.sh', 'forged.sh', 'silent.sh']) {
    const { id } = await first.start(model)
    await first.waitForEnd(id)
    ids.unshift(id)
  }
  const before = first.runs.list()
  t.same(
    before.map(({ id }) => id),
    ids,
  )
  await first.close()
  for (const id of ids) rmSync(join(first.dir, 'processes', toProcessId(id), 'stdout'))
  const second = await openRuns(t, first.home)
  t.same(second.runs.list(), before)
  await t.rejects(second.readPage(ids[1] ?? ''), { code: 'not_found' })
})

t.test('a repeated start after the restart does not start the coding agent again', async (t) => {
  const request = createRequest('wait.sh')
  const first = await createTestRuns(t)
  const { pid } = await first.runs.start(request)
  const second = await reopen(t, first)
  t.equal((await second.runs.start(request)).pid, pid)
  t.equal(second.processes.list().length, 1)
})

t.test('a run whose process had not started is unknown, and can be started', async (t) => {
  const request = createRequest('normal.sh')
  const first = await createTestRuns(t)
  const { id } = await first.start('normal.sh')
  await first.waitForEnd(id)
  await first.close()
  const record = { ...readRecord(getRunDir(first, id)), id: request.id, result: null }
  mkdirSync(getRunDir(first, request.id))
  writeFileSync(join(getRunDir(first, request.id), 'run.json'), JSON.stringify(record))
  const second = await openRuns(t, first.home)
  t.equal(second.runs.get(request.id), undefined)
  await second.runs.start(request)
  t.match(await second.waitForEnd(request.id), { status: 'done' })
})

t.test('a run with a damaged record is deleted with its process', async (t) => {
  const first = await createTestRuns(t)
  const { id, pid } = await first.start('wait.sh')
  await first.close()
  writeFileSync(join(getRunDir(first, id), 'run.json'), '{"id":')
  const second = await openRuns(t, first.home)
  t.same(second.runs.list(), [])
  t.same(second.processes.list(), [])
  t.notOk(isAlive(pid ?? 0))
})

t.test('completes an interrupt that the previous agent recorded', async (t) => {
  const first = await createTestRuns(t)
  const { id, pid } = await first.start('tool.sh')
  const tool = await waitForPid(first.home, 'tool')
  await first.readPage(id, 0, 10, 15_000)
  await first.close()
  // As if the agent had been killed before the signal.
  const path = join(getRunDir(first, id), 'run.json')
  const interrupt = { requestedAt: Date.now(), cause: 'Interrupted by a request.' }
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), interrupt }))
  const second = await openRuns(t, first.home)
  t.match(await second.waitForEnd(id), { status: 'interrupted', error: 'Interrupted by a request.' })
  t.notOk(isAlive(pid ?? 0))
  t.notOk(isAlive(tool), 'what it left running is terminated')
})

t.test('an agent that is closed during an interrupt leaves it to the next agent', async (t) => {
  const first = await createTestRuns(t)
  const { id } = await first.start('stubborn.sh')
  await first.readPage(id, 0, 10, 15_000)
  const interrupted = t.rejects(first.runs.interrupt(id, 'x'), { code: 'exec_failed' })
  await waitUntil('the request is recorded', () => readRecord(getRunDir(first, id))?.interrupt)
  const second = await reopen(t, first)
  await interrupted
  t.match(await second.waitForEnd(id), { status: 'interrupted', error: 'x' })
})

t.test(
  'an interrupted run stays interrupted when the agent is killed before the result is recorded',
  async (t) => {
    const first = await createTestRuns(t)
    const { id } = await first.start('wait.sh')
    await first.readPage(id, 1, 10, 15_000)
    await first.runs.interrupt(id, 'x')
    const before = first.get(id)
    await first.close()
    const path = join(getRunDir(first, id), 'run.json')
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), result: null }))
    const second = await openRuns(t, first.home)
    t.same(await second.waitForEnd(id), before)
  },
)

t.test('runs that are cut off by a power loss have failed', async (t) => {
  const first = await createTestRuns(t)
  const { id } = await first.start('wait.sh')
  await first.readPage(id, 1, 10, 15_000)
  const second = await reopen(t, first, { bootId: 'another boot' })
  t.match(await second.waitForEnd(id), {
    status: 'failed',
    error: 'The box stopped during the run.',
    exitCode: null,
    eventCount: 2,
  })
  const { finishedAt } = second.get(id)
  const third = await reopen(t, second, { bootId: 'another boot' })
  t.equal(third.get(id).finishedAt, finishedAt)
})

t.test('a run whose runner is killed has failed, and its coding agent is terminated', async (t) => {
  const agent = await createTestRuns(t)
  const { id, pid } = await agent.start('wait.sh')
  await agent.readPage(id, 1, 10, 15_000)
  const started = readFileSync(join(agent.dir, 'processes', toProcessId(id), 'started'), 'utf8')
  process.kill(Number(started.split(' ')[2]), 'SIGKILL')
  t.match(await agent.waitForEnd(id), { status: 'failed', exitCode: null })
  t.notOk(isAlive(pid ?? 0))
})

t.test('runs that end while the box stops are interrupted, unless they are done', async (t) => {
  const agent = await createTestRuns(t)
  const { id, pid } = await agent.start('wait.sh')
  const other = await agent.start('polite.sh')
  for (const run of [id, other.id]) await agent.readPage(run, 0, 10, 15_000)
  agent.runs.expectStop()
  process.kill(pid ?? 0, 'SIGTERM')
  process.kill(-(other.pid ?? 0), 'SIGINT')
  t.match(await agent.waitForEnd(id), { status: 'interrupted', error: 'The box stopped during the run.' })
  t.match(await agent.waitForEnd(other.id), { status: 'done', error: null })
})

t.test('a coding agent that exits before the agent handles the signal is interrupted too', async (t) => {
  const agent = await createTestRuns(t)
  const { id, pid } = await agent.start('wait.sh')
  await agent.readPage(id, 0, 10, 15_000)
  process.kill(pid ?? 0, 'SIGTERM')
  await waitForExitRecord(agent, id)
  agent.runs.expectStop()
  t.match(await agent.waitForEnd(id), { status: 'interrupted', error: 'The box stopped during the run.' })
})

t.test('the next agent knows that the box stopped', async (t) => {
  const first = await createTestRuns(t)
  const { id, pid } = await first.start('wait.sh')
  await first.readPage(id, 0, 10, 15_000)
  first.runs.expectStop()
  await first.close()
  process.kill(pid ?? 0, 'SIGKILL')
  await waitForExitRecord(first, id)
  const second = await openRuns(t, first.home)
  t.match(await second.waitForEnd(id), { status: 'interrupted' })
  const later = await second.start('wait.sh')
  process.kill(later.pid ?? 0, 'SIGKILL')
  t.match(await second.waitForEnd(later.id), { status: 'failed' }, 'later runs are not affected')
})

t.test('a run that survives the stop of the agent is not affected by it', async (t) => {
  const first = await createTestRuns(t)
  const { id, pid } = await first.start('wait.sh')
  await first.readPage(id, 0, 10, 15_000)
  first.runs.expectStop()
  const second = await reopen(t, first)
  process.kill(pid ?? 0, 'SIGKILL')
  t.match(await second.waitForEnd(id), { status: 'failed', exitCode: isNativeRunner ? null : 137 })
})

t.test('numbers stay the same after the head of the log is discarded', async (t) => {
  const options = { maxLogBytes: 64 * 1024, checkpointBytes: 4 * 1024 }
  const first = await createTestRuns(t, options)
  const { id } = await first.start('count.sh')
  await waitUntil('output is discarded', () => first.get(id).eventCount > 8000)
  const agent = await reopen(t, first, options)
  release(agent)
  const { eventCount } = await agent.waitForEnd(id)
  const events = await agent.readAll(id)
  const numbers = events.map(({ seq }) => seq)
  t.ok((numbers[0] ?? 0) > 1)
  t.equal(numbers.at(-1), eventCount)
  t.same(
    numbers,
    numbers.map((_, index) => (numbers[0] ?? 0) + index),
  )
  const wrong = events.filter(({ seq, text, type }, index) => {
    const next = events[index + 1]
    return type === 'text' && next?.type === 'text' && Number(next.text) - Number(text) !== next.seq - seq
  })
  t.same(wrong, [])
})

for (const content of [null, 'damaged\n{"offset":1,"seq":70,"at":1,"notice":null,"state":{}}\n'])
  t.test(`without its checkpoints, an ended run has the same events (${content ?? 'removed'})`, async (t) => {
    const agent = await createTestRuns(t, { checkpointBytes: 1024 })
    const { id } = await agent.start('count.sh')
    await waitUntil('there are checkpoints', () => agent.get(id).eventCount > 500)
    release(agent)
    await agent.waitForEnd(id)
    const events = await agent.readAll(id)
    const path = join(getRunDir(agent, id), 'checkpoints')
    if (content === null) rmSync(path)
    else writeFileSync(path, content)
    t.same(await agent.readAll(id, 100), events)
  })

t.test('without its checkpoints and the start of its output, an ended run has new numbers', async (t) => {
  const options = { maxLogBytes: 32 * 1024, checkpointBytes: 1024 }
  const agent = await createTestRuns(t, options)
  const { id } = await agent.start('count.sh')
  await waitUntil('output is discarded', () => agent.get(id).eventCount > 4000)
  release(agent)
  const { eventCount } = await agent.waitForEnd(id)
  rmSync(join(getRunDir(agent, id), 'checkpoints'))
  const events = await agent.readAll(id, 100)
  t.match(events[0], { type: 'notice', text: /discarded/ })
  t.ok((events[0]?.seq ?? 0) > eventCount)
  t.match(events.at(-1), { type: 'done' })
})

t.test('a run whose output is deleted while it runs ends with its exit status', async (t) => {
  const agent = await createTestRuns(t)
  const { id } = await agent.start('wait.sh')
  await agent.readPage(id, 1, 10, 15_000)
  rmSync(join(agent.dir, 'processes', toProcessId(id), 'stdout'))
  release(agent)
  t.match(await agent.waitForEnd(id), { status: 'done', eventCount: 2 })
  await t.rejects(agent.readPage(id), { code: 'not_found' })
})
