// Interrupts of runs, of queued prompts, and of all prompts of a conversation or of the box.
import t from 'tap'
import { promptInterruptedSchema, promptsInterruptedSchema } from '../../../shared/api/prompts.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createPromptRequest, enqueue, openPrompts, start } from './prompts-support.ts'

t.test('an interrupt ends only its run, and the queue continues', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  const next = await enqueue(prompts)
  t.same(promptInterruptedSchema.parse(await prompts.interrupt(first.id)), {
    ok: true,
    type: 'prompt.interrupted',
    id: first.id,
    wasRunning: true,
    signal: 'INT',
    dequeued: false,
  })
  await waitUntil('the queued prompt has started', () => fake.started.length === 2)
  t.match(await prompts.interrupt(first.id), { wasRunning: false, signal: null, dequeued: false })
  t.match(prompts.list(undefined), { active: { id: next.id } })
})

t.test('an interrupt removes a queued prompt', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t, { limits: { runs: 1 } })
  const first = await start(prompts)
  const removed = await enqueue(prompts)
  const alone = await enqueue(prompts, { new: true })
  const kept = await enqueue(prompts)
  for (const { id } of [removed, alone])
    t.same(promptInterruptedSchema.parse(await prompts.interrupt(id)), {
      ok: true,
      type: 'prompt.interrupted',
      id,
      wasRunning: false,
      signal: null,
      dequeued: true,
    })
  await t.rejects(prompts.interrupt(removed.id), { code: 'not_found' })
  t.match(prompts.list(undefined), { active: { id: first.id }, queued: [{ id: kept.id, position: 1 }] })
  t.same(
    prompts.listConversations().conversations.map(({ id }) => id),
    [first.conversationId],
    'a conversation that never had a run is deleted',
  )
  await prompts.close()
  const { prompts: restarted } = await openPrompts(t, { fake, dir, limits: { runs: 1 } })
  t.match(restarted.list(undefined).queued, [{ id: kept.id }])
})

t.test('an interrupt of all empties the queue first', async (t) => {
  const { prompts, fake } = await openPrompts(t, { limits: { runs: 2 } })
  const first = await start(prompts)
  const second = await start(prompts, { new: true, provider: 'codex' })
  const queued = [await enqueue(prompts), await enqueue(prompts, { new: true })]
  const result = promptsInterruptedSchema.parse(await prompts.interruptAll(undefined))
  t.same(result, {
    ok: true,
    type: 'prompt.interrupted',
    id: first.id,
    wasRunning: true,
    signal: 'INT',
    interrupted: [first, second].map(({ id, conversationId }) => ({ id, conversationId, signal: 'INT' })),
    dequeued: queued.map(({ id }) => id),
  })
  t.match(prompts.list(undefined), { active: null, queued: [] })
  t.equal(fake.started.length, 2)
  t.same(await prompts.interruptAll(undefined), {
    ok: true,
    type: 'prompt.interrupted',
    id: null,
    wasRunning: false,
    signal: null,
    interrupted: [],
    dequeued: [],
  })
})

t.test('an interrupt of a conversation leaves the others', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  const other = await start(prompts, { new: true })
  const mine = await enqueue(prompts, { conversationId: first.conversationId })
  const theirs = await enqueue(prompts, { conversationId: other.conversationId })
  t.match(await prompts.interruptAll(first.conversationId), {
    id: first.id,
    wasRunning: true,
    signal: 'INT',
    interrupted: [{ id: first.id }],
    dequeued: [mine.id],
  })
  t.match(prompts.list(undefined), { active: { id: other.id }, queued: [{ id: theirs.id }] })
  t.equal(fake.started.length, 2)
  await t.rejects(prompts.interruptAll(newId('conversation')), { code: 'not_found' })
})

t.test('an interrupt does not wait until a coding agent is installed', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const { promise: neverInstalled } = Promise.withResolvers<void>()
  fake.failStarts(() => neverInstalled)
  const request = createPromptRequest()
  const { runId, newConversationId } = request
  const started = prompts.submit(request)
  await t.rejects(prompts.readStatus(runId), { code: 'not_found', message: /is being started/ })
  t.match(prompts.listConversations(), { running: 1 })
  t.same(await prompts.interrupt(runId), {
    ok: true,
    type: 'prompt.interrupted',
    id: runId,
    wasRunning: true,
    signal: null,
    dequeued: false,
  })
  const interrupted = { status: 'interrupted', error: /by a request/, pid: null }
  t.match(await started, { type: 'prompt.started', run: interrupted })
  t.match((await prompts.readStatus(runId)).run, interrupted)
  t.match(prompts.listConversations(), { running: 0, conversations: [{ lastStatus: 'interrupted' }] })
  t.match(await prompts.interrupt(runId), { wasRunning: false, signal: null }, 'only once')

  const next = createPromptRequest({ conversationId: newConversationId })
  const again = prompts.submit(next)
  t.match(promptsInterruptedSchema.parse(await prompts.interruptAll(undefined)), {
    id: next.runId,
    wasRunning: true,
    signal: null,
    interrupted: [{ id: next.runId, conversationId: newConversationId, signal: null }],
  })
  t.match(await again, { run: interrupted })
})

t.test('an interrupt of a queued prompt whose coding agent is being installed', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  const queued = await enqueue(prompts)
  const { promise: neverInstalled } = Promise.withResolvers<void>()
  fake.failStarts(() => neverInstalled)
  fake.end(first.id)
  await waitUntil('the queued prompt is starting', () => prompts.listConversations().running === 1)
  t.match(await prompts.interrupt(queued.id), { wasRunning: true, signal: null, dequeued: false })
  t.match((await prompts.readStatus(queued.id)).run, { status: 'interrupted', parent: first.id })
  t.same(prompts.list(undefined).queued, [])
})

t.test('a prompt that cannot be recorded as interrupted is removed from the queue', async (t) => {
  const { prompts, fake } = await openPrompts(t, { limits: { runs: 2 } })
  const running = [await start(prompts), await start(prompts, { new: true })]
  const queued = [await enqueue(prompts, { new: true }), await enqueue(prompts, { new: true })]
  fake.failStarts(() => Promise.withResolvers<void>().promise)
  fake.failRecords(() => Promise.reject(new Error('The disk is full.')))
  for (const { id } of running) fake.end(id)
  await waitUntil('the queued prompts are starting', () => prompts.list(undefined).active === null)
  const [one, other] = queued.map(({ id }) => id)
  t.match(await prompts.interrupt(one ?? ''), { wasRunning: false, signal: null, dequeued: true })
  t.match(await prompts.interruptAll(undefined), { interrupted: [], dequeued: [other] })
  t.match(prompts.list(undefined), { active: null, queued: { length: 0 } })
})

t.test('an interrupt of a run whose start fails', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  fake.failStarts(() => Promise.reject(new ApiError('provider_not_signed_in')))
  const refused = createPromptRequest()
  const failed = t.rejects(prompts.submit(refused), { code: 'provider_not_signed_in' })
  await t.rejects(prompts.interrupt(refused.runId), { code: 'not_found' })
  await failed
  await t.rejects(prompts.interrupt(newId('run')), { code: 'not_found' })
})
