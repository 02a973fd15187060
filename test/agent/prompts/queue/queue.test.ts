// Queued prompts start in order, once, also over restarts of the agent.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ApiError } from '../../../../shared/errors.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createFakeRuns, type FakeRuns } from '../fake-runs.ts'
import { createPromptRequest, enqueue, openPrompts, start, submitAndDescribe } from '../prompts-support.ts'

const waitForStarts = (fake: FakeRuns, count: number) =>
  waitUntil(`${count} runs have started`, () => fake.started.length >= count)
/** Readable also after the agent was closed. */
const startedIds = (fake: FakeRuns) => fake.started.map(({ id }) => id)

t.test('prompts of a conversation start one after the other and resume its session', async (t) => {
  const { prompts, fake, isActive } = await openPrompts(t)
  const first = await start(prompts, { model: 'opus' })
  const ids = [first.id]
  for (const prompt of ['one', 'two', 'three', 'four', 'five'])
    ids.push((await enqueue(prompts, { prompt, boxEnv: { PROMPT: prompt } })).id)
  t.ok(isActive(), 'queued prompts keep the box active')
  // The second one fails and the third one is interrupted: the queue continues.
  for (const [index, status] of (['done', 'failed', 'interrupted', 'done', 'done'] as const).entries()) {
    const current = fake.started[index]
    fake.setSession(current?.id ?? '', `s-${index}`)
    t.equal(prompts.list(undefined).queued.length, 5 - index)
    fake.end(current?.id ?? '', status)
    await waitForStarts(fake, index + 2)
  }
  t.same(startedIds(fake), ids)
  t.match(fake.started.slice(1), [
    { prompt: 'one', boxEnv: { PROMPT: 'one' }, model: 'opus', resumedFrom: 's-0', parent: ids[0] },
    { prompt: 'two', boxEnv: { PROMPT: 'two' }, resumedFrom: 's-1', parent: ids[1] },
    { prompt: 'three', resumedFrom: 's-2', parent: ids[2] },
    { prompt: 'four', resumedFrom: 's-3', parent: ids[3] },
    { prompt: 'five', resumedFrom: 's-4', parent: ids[4] },
  ])
  await waitUntil('the queue is empty', () => !isActive())
  t.same(prompts.list(undefined).queued, [])
})

t.test('the oldest prompt that can start gets a free slot', async (t) => {
  const { prompts, fake } = await openPrompts(t, { limits: { runs: 2 } })
  const a = await start(prompts)
  const b = await start(prompts, { new: true })
  const afterA = await enqueue(prompts, { conversationId: a.conversationId })
  const fresh = await enqueue(prompts, { new: true, provider: 'codex' })
  const afterB = await enqueue(prompts, { conversationId: b.conversationId })
  // The conversation of the oldest prompt is busy.
  fake.end(b.id)
  await waitForStarts(fake, 3)
  fake.end(a.id)
  await waitForStarts(fake, 4)
  fake.end(fresh.id)
  await waitForStarts(fake, 5)
  t.same(startedIds(fake), [a.id, b.id, fresh.id, afterA.id, afterB.id])
})

t.test('a queued prompt that cannot start becomes a failed run, and the queue continues', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  const broken = await enqueue(prompts, { prompt: 'broken' })
  const next = await enqueue(prompts, { prompt: 'next' })
  fake.failStarts(async ({ prompt }) => {
    if (prompt === 'broken') throw new ApiError('provider_not_signed_in', 'Sign in to claude.')
  })
  fake.end(first.id)
  await waitForStarts(fake, 2)
  t.same(startedIds(fake), [first.id, next.id])
  t.match((await prompts.readStatus(broken.id)).run, {
    status: 'failed',
    error: 'Sign in to claude.',
    parent: first.id,
    prompt: 'broken',
    conversationId: first.conversationId,
  })
  t.match(prompts.listConversations().conversations, [{ prompts: 3, lastRunId: next.id }])
})

t.test(
  'a failed run that cannot be recorded stays in the queue and blocks only its conversation',
  async (t) => {
    const { prompts, fake, dir } = await openPrompts(t, { limits: { runs: 1 } })
    const first = await start(prompts)
    const broken = await enqueue(prompts, { prompt: 'broken' })
    const behind = await enqueue(prompts)
    const other = await enqueue(prompts, { new: true })
    let attempts = 0
    fake.failStarts(async ({ prompt }) => {
      if (prompt === 'broken') throw new ApiError('exec_failed', 'no space left on device')
    })
    fake.failRecords(() => {
      attempts++
      return Promise.reject(new Error('no space left on device'))
    })
    fake.end(first.id)
    await waitForStarts(fake, 2)
    t.same(startedIds(fake), [first.id, other.id])
    fake.end(other.id)
    await prompts.close()
    t.equal(attempts, 1, 'the next attempt is later')
    fake.failRecords(async () => undefined)
    await openPrompts(t, { fake, dir, limits: { runs: 1 } })
    await waitForStarts(fake, 3)
    t.same(startedIds(fake), [first.id, other.id, behind.id])
    t.match(fake.runs.get(broken.id), { status: 'failed', error: 'no space left on device' })
  },
)

t.test('a restarted agent starts the accepted prompts once and in order', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t, { limits: { runs: 1 } })
  const first = await start(prompts)
  const ids = [first.id]
  const exact = 'é\r\n\0 "quoted" \u2028 end\n\n'
  for (let count = 0; count < 5; count++)
    ids.push(
      (await enqueue(prompts, { prompt: exact + count, new: count === 3, boxEnv: { N: `${count}` } })).id,
    )
  await prompts.close()
  for (const name of readdirSync(join(dir, 'queue')))
    t.equal(statSync(join(dir, 'queue', name)).mode & 0o777, 0o600, name)
  t.equal(readFileSync(join(dir, 'queue', `${ids[1]}.prompt`), 'utf8'), `${exact}0`)
  for (let count = 1; count < ids.length; count++) {
    const restarted = await openPrompts(t, { fake, dir, limits: { runs: 1 } })
    t.same(
      restarted.prompts.list(undefined).queued.map(({ id }) => id),
      ids.slice(count),
    )
    fake.end(ids[count - 1] ?? '')
    await waitForStarts(fake, count + 1)
    await restarted.prompts.close()
  }
  t.same(startedIds(fake), ids)
  t.same(
    fake.started.slice(1).map(({ prompt, boxEnv }) => `${prompt} ${boxEnv.N}`),
    [0, 1, 2, 3, 4].map((count) => `${exact}${count} ${count}`),
  )
  const { prompts: last } = await openPrompts(t, { fake, dir })
  t.match(last.list(undefined), { queued: [] })
  t.match(last.listConversations().conversations, [{ prompts: 5 }, { prompts: 1 }])
  t.same(readdirSync(join(dir, 'queue')), [])
})

t.test('prompts start without a run in progress after a restart', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts)
  const next = await enqueue(prompts)
  await prompts.close()
  fake.end(first.id)
  await openPrompts(t, { fake, dir })
  await waitForStarts(fake, 2)
  t.same(startedIds(fake), [first.id, next.id])
})

t.test('an agent that was killed after the start of a queued prompt does not start it again', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts)
  const next = await enqueue(prompts)
  await prompts.close()
  fake.end(first.id)
  // The run has started; the files of the queue and of the conversations do not show it.
  fake.addRun({ id: next.id, conversationId: first.conversationId, parent: first.id })
  const restarted = await openPrompts(t, { fake, dir })
  t.match(restarted.prompts.list(undefined), { active: { id: next.id }, queued: [] })
  t.match(restarted.prompts.listConversations().conversations, [
    { id: first.conversationId, prompts: 2, lastRunId: next.id, running: true },
  ])
  t.same(readdirSync(join(dir, 'queue')), [])
  t.equal(fake.started.length, 1)
})

t.test('an agent that was killed while it accepted a prompt has not accepted it', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts)
  await prompts.close()
  const { runId } = createPromptRequest()
  writeFileSync(join(dir, 'queue', `${runId}.prompt`), 'incomple')
  writeFileSync(join(dir, 'queue', `${runId}.json.new`), '{"id":')
  fake.end(first.id)
  const restarted = await openPrompts(t, { fake, dir })
  t.match(restarted.prompts.list(undefined), { queued: [], runs: [{ id: first.id }] })
  t.same(readdirSync(join(dir, 'queue')), [])
})

t.test('damaged files cost only their own content', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts, { cwd: 'work' })
  fake.setSession(first.id, 's-1')
  const damaged = await enqueue(prompts)
  const intact = await enqueue(prompts)
  await prompts.close()
  writeFileSync(join(dir, 'queue', `${damaged.id}.json`), '{"id":1}')
  for (const content of ['', '{', 'null', '{"conversations":[{}]}']) {
    writeFileSync(join(dir, 'conversations.json'), content)
    const restarted = await openPrompts(t, { fake, dir })
    t.match(restarted.prompts.listConversations().conversations, [
      { id: first.conversationId, prompts: 1, sessionId: 's-1', cwd: 'work', queued: 1 },
    ])
    t.match(restarted.prompts.list(undefined).queued, [{ id: intact.id }])
    await restarted.prompts.close()
  }
  rmSync(dir, { recursive: true })
  const { prompts: empty } = await openPrompts(t, { fake: createFakeRuns(), dir })
  t.match(empty.listConversations().conversations, [])
})

t.test('runs that the conversations do not have are attached again', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts)
  fake.setSession(first.id, 's-1')
  fake.end(first.id)
  await prompts.close()
  const attached = fake.addRun({ conversationId: first.conversationId, model: 'haiku', parent: first.id })
  const alone = fake.addRun({ provider: 'codex' }, { sessionId: 's-2' })
  fake.end(attached.id, 'failed')
  for (let restart = 0; restart < 2; restart++) {
    const { prompts: restarted } = await openPrompts(t, { fake, dir })
    t.match(restarted.listConversations().conversations, [
      { id: first.conversationId, prompts: 2, lastRunId: attached.id, sessionId: 's-1', model: 'haiku' },
      { id: alone.conversationId, prompts: 1, provider: 'codex', sessionId: 's-2', running: true },
    ])
    await restarted.close()
  }
})

t.test('no queued prompt starts while the box stops', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts)
  const next = await enqueue(prompts)
  let stopped = false
  const stop = prompts.expectStop().then(() => {
    stopped = true
  })
  t.notOk(stopped)
  fake.end(first.id, 'interrupted')
  await stop
  await prompts.close()
  t.match(prompts.list(undefined).queued, [{ id: next.id }])
  await openPrompts(t, { fake, dir })
  await waitForStarts(fake, 2)
  t.same(startedIds(fake), [first.id, next.id])
})

t.test('a start that fails because the agent stops is repeated by the next agent', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts)
  const next = await enqueue(prompts)
  const failure = Promise.withResolvers<void>()
  let isStarting = false
  fake.failStarts(() => {
    isStarting = true
    return failure.promise
  })
  fake.end(first.id)
  await waitUntil('the run is starting', () => isStarting)
  const closed = prompts.close()
  failure.reject(new ApiError('exec_failed', 'The agent is stopping. Try again.'))
  await closed
  fake.failStarts(async () => undefined)
  await openPrompts(t, { fake, dir })
  await waitForStarts(fake, 2)
  t.same(startedIds(fake), [first.id, next.id])
})

t.test('a prompt that cannot be stored is refused', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const first = await start(prompts)
  rmSync(join(dir, 'queue'), { recursive: true })
  t.equal(await submitAndDescribe(prompts, { queue: true }), 'exec_failed')
  t.same(prompts.list(undefined).queued, [])
  fake.end(first.id)
  t.equal(await submitAndDescribe(prompts, { queue: true }), 'prompt.started')
})
