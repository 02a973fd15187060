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
    ...{ ok: true, type: 'prompt.interrupted', id: first.id },
    ...{ wasRunning: true, signal: 'INT', dequeued: false },
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
      ...{ ok: true, type: 'prompt.interrupted', id },
      ...{ wasRunning: false, signal: null, dequeued: true },
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
    ...{ ok: true, type: 'prompt.interrupted', id: first.id, wasRunning: true, signal: 'INT' },
    interrupted: [first, second].map(({ id, conversationId }) => ({ id, conversationId, signal: 'INT' })),
    dequeued: queued.map(({ id }) => id),
  })
  t.match(prompts.list(undefined), { active: null, queued: [] })
  t.equal(fake.started.length, 2)
  t.same(await prompts.interruptAll(undefined), {
    ...{ ok: true, type: 'prompt.interrupted', id: null, wasRunning: false, signal: null },
    ...{ interrupted: [], dequeued: [] },
  })
})

t.test('an interrupt of a conversation leaves the others', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  const other = await start(prompts, { new: true })
  const mine = await enqueue(prompts, { conversationId: first.conversationId })
  const theirs = await enqueue(prompts, { conversationId: other.conversationId })
  t.match(await prompts.interruptAll(first.conversationId), {
    ...{ id: first.id, wasRunning: true, signal: 'INT' },
    ...{ interrupted: [{ id: first.id }], dequeued: [mine.id] },
  })
  t.match(prompts.list(undefined), { active: { id: other.id }, queued: [{ id: theirs.id }] })
  t.equal(fake.started.length, 2)
  await t.rejects(prompts.interruptAll(newId('conversation')), { code: 'not_found' })
})

t.test('an interrupt waits for a run that is starting', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const installed = Promise.withResolvers<void>()
  fake.failStarts(() => installed.promise)
  const request = createPromptRequest()
  const started = prompts.submit(request)
  const one = prompts.interrupt(request.runId)
  const all = prompts.interruptAll(undefined)
  installed.resolve()
  await started
  t.match(await one, { id: request.runId, dequeued: false })
  await all
  t.match((await prompts.readStatus(request.runId)).run, { status: 'interrupted' })

  fake.failStarts(() => Promise.reject(new ApiError('provider_not_signed_in')))
  const refused = createPromptRequest()
  const failed = t.rejects(prompts.submit(refused), { code: 'provider_not_signed_in' })
  await t.rejects(prompts.interrupt(refused.runId), { code: 'not_found' })
  await failed
  await t.rejects(prompts.interrupt(newId('run')), { code: 'not_found' })
})
