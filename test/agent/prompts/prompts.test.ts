// Prompts start runs in conversations, which keep their provider, directory, model and session.
import t from 'tap'
import {
  conversationListSchema,
  promptListSchema,
  promptQueuedSchema,
  promptStartedSchema,
} from '../../../shared/api/prompts.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createPromptRequest, enqueue, openPrompts, start, submitAndDescribe } from './prompts-support.ts'

t.test('a prompt starts a run in a new conversation', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const request = createPromptRequest({
    prompt: 'Fix it\n',
    model: 'opus',
    reasoningEffort: 'high',
    cwd: '~/work',
    auto: true,
    boxEnv: { KEY: 'value' },
  })
  const answer = promptStartedSchema.parse(await prompts.submit(request))
  t.match(answer.run, {
    id: request.runId,
    conversationId: request.newConversationId,
    status: 'running',
    prompt: 'Fix it\n',
    provider: 'claude',
    model: 'opus',
    reasoningEffort: 'high',
    cwd: '~/work',
    auto: true,
    resumedFrom: null,
    parent: null,
  })
  t.match(fake.started, [{ prompt: 'Fix it\n', boxEnv: { KEY: 'value' }, cwd: '~/work' }])
  t.match(promptListSchema.parse(prompts.list(undefined)), {
    runs: [{ id: request.runId }],
    active: { id: request.runId },
    queued: [],
  })
  t.match(conversationListSchema.parse(prompts.listConversations()), {
    conversations: [
      {
        id: request.newConversationId,
        provider: 'claude',
        model: 'opus',
        cwd: '~/work',
        prompts: 1,
        queued: 0,
        running: true,
        lastRunId: request.runId,
        lastStatus: 'running',
        lastPrompt: 'Fix it\n',
      },
    ],
    running: 1,
    limit: 4,
  })
})

t.test('the next prompt resumes the session in the same directory with the same model', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts, { model: 'opus', cwd: 'work' })
  fake.setSession(first.id, 's-1')
  fake.end(first.id)
  const second = await start(prompts, { conversationId: first.conversationId })
  t.match(second, {
    conversationId: first.conversationId,
    model: 'opus',
    cwd: 'work',
    resumedFrom: 's-1',
    parent: first.id,
  })
  // It fails before its session is known: the next run resumes the last known one.
  fake.end(second.id, 'failed', 'failed')
  const third = await start(prompts, { continue: true, model: 'haiku' })
  t.match(third, { model: 'haiku', resumedFrom: 's-1', parent: second.id })
  fake.end(third.id)
  t.match(await start(prompts, { continue: true }), { model: 'haiku' })
  t.match(prompts.listConversations().conversations, [{ prompts: 4, sessionId: 's-1', model: 'haiku' }])
})

t.test('continue selects the conversation that was active last', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  const second = await start(prompts, { new: true })
  const other = await start(prompts, { new: true, provider: 'codex' })
  for (const { id } of [second, first, other]) {
    fake.setSession(id, `session of ${id}`)
    fake.end(id)
  }
  const ids = prompts.listConversations().conversations.map(({ id }) => id)
  t.same(ids, [other.conversationId, first.conversationId, second.conversationId])
  t.match(await start(prompts, { continue: true }), {
    conversationId: first.conversationId,
    resumedFrom: `session of ${first.id}`,
  })
  t.equal(await submitAndDescribe(prompts, { provider: 'pi', continue: true }), 'no_session_to_continue')
})

t.test('a conversation without a session starts a fresh session', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const first = await start(prompts)
  fake.end(first.id, 'failed', 'not signed in')
  t.equal(await submitAndDescribe(prompts, { continue: true }), 'no_session_to_continue')
  t.match(await start(prompts, { conversationId: first.conversationId }), {
    resumedFrom: null,
    parent: first.id,
  })
})

t.test('a second prompt is refused, queued, or starts beside the first one', async (t) => {
  const { prompts } = await openPrompts(t, { limits: { runs: 2, queued: 2 } })
  const first = await start(prompts)
  t.equal(await submitAndDescribe(prompts, {}), 'prompt_in_progress')
  t.equal(await submitAndDescribe(prompts, { provider: 'codex' }), 'prompt_in_progress')
  const answer = promptQueuedSchema.parse(
    await prompts.submit(createPromptRequest({ queue: true, prompt: 'next', model: 'haiku' })),
  )
  t.match(answer, {
    conversationId: first.conversationId,
    queued: { position: 1, provider: 'claude', model: 'haiku', prompt: 'next' },
    active: { id: first.id, status: 'running' },
  })
  await start(prompts, { new: true })
  t.equal(await submitAndDescribe(prompts, { new: true }), 'prompt_limit_reached')
  const waiting = await enqueue(prompts, { new: true, provider: 'codex' })
  t.equal(waiting.position, 2)
  t.equal(await submitAndDescribe(prompts, { queue: true }), 'prompt_limit_reached')
  t.match(prompts.list(undefined).queued, [
    { id: answer.queued.id, position: 1 },
    { id: waiting.id, position: 2 },
  ])
  t.match(prompts.list(waiting.conversationId), { runs: [], active: null, queued: [{ position: 2 }] })
  const listed = prompts.listConversations().conversations
  t.match(
    listed.find(({ id }) => id === waiting.conversationId),
    { prompts: 0, queued: 1, running: false, lastRunId: null, lastStatus: null, lastPrompt: 'Hello' },
  )
})

t.test('requests that cannot work are refused before anything starts', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  const refusal = (fields: Parameters<typeof submitAndDescribe>[1]) => submitAndDescribe(prompts, fields)
  t.equal(await refusal({ prompt: 'x'.repeat(512 * 1024 + 1) }), 'payload_too_large')
  t.equal(await refusal({ prompt: 'é'.repeat(256 * 1024 + 1) }), 'payload_too_large')
  t.equal(await refusal({ provider: 'pi', auto: false }), 'invalid_request')
  t.equal(await refusal({ provider: 'codex', model: 'deepseek/deepseek-chat' }), 'invalid_request')
  t.equal(await refusal({ conversationId: 'nonsense' }), 'not_found')
  t.same(fake.started, [])
  t.same(prompts.listConversations().conversations, [])
  t.match(await start(prompts, { provider: 'pi' }), { auto: true })
  t.match(await start(prompts, { new: true, prompt: 'é'.repeat(256 * 1024) }), { auto: false })
})

t.test('a run that cannot start leaves nothing', async (t) => {
  const { prompts, fake } = await openPrompts(t)
  fake.failStarts(() => Promise.reject(new ApiError('provider_not_signed_in', 'Sign in.')))
  t.equal(await submitAndDescribe(prompts, {}), 'provider_not_signed_in')
  t.match(prompts.list(undefined), { runs: [], queued: [] })
  t.match(prompts.listConversations(), { conversations: [], running: 0 })
  fake.failStarts(async () => undefined)
  t.equal(await submitAndDescribe(prompts, {}), 'prompt.started')
})

t.test('a run that is starting counts as in progress', async (t) => {
  const { prompts, fake } = await openPrompts(t, { limits: { runs: 2 } })
  const installed = Promise.withResolvers<void>()
  fake.failStarts(() => installed.promise)
  const first = createPromptRequest()
  const started = prompts.submit(first)
  t.equal(await submitAndDescribe(prompts, {}), 'prompt_in_progress')
  t.equal(await submitAndDescribe(prompts, { continue: true }), 'prompt_in_progress')
  const second = await enqueue(prompts)
  t.equal(second.conversationId, first.newConversationId)
  t.match(prompts.listConversations(), { conversations: [{ running: true, queued: 1 }], running: 1 })
  installed.resolve()
  t.match(await started, { type: 'prompt.started' })
  t.match(prompts.list(undefined), { runs: [{ id: first.runId }], queued: [{ id: second.id }] })
})

t.test('a repeated request starts nothing and gets the same answer', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t)
  const request = createPromptRequest()
  const [first, second] = await Promise.all([prompts.submit(request), prompts.submit(request)])
  t.same(first, second)
  t.same(await prompts.submit(request), first)
  const next = createPromptRequest({ queue: true })
  const [queued, same] = await Promise.all([prompts.submit(next), prompts.submit(next)])
  t.match(queued, { type: 'prompt.queued', queued: { position: 1 } })
  t.same(same, queued)
  fake.end(request.runId)
  await waitUntil('the queued prompt has started', () => fake.started.length === 2)
  t.same(await prompts.submit(next), queued)
  await prompts.close()
  const restarted = await openPrompts(t, { fake, dir })
  for (const { runId } of [request, next])
    t.match(await restarted.prompts.submit({ ...request, runId }), {
      type: 'prompt.started',
      run: { id: runId },
    })
  t.equal(fake.started.length, 2)
})

t.test('the least recently active conversations are deleted with their runs', async (t) => {
  const { prompts, fake, dir } = await openPrompts(t, { limits: { conversations: 3 } })
  const oldest = await start(prompts)
  fake.end(oldest.id)
  const running = await start(prompts)
  const second = await start(prompts, { new: true })
  fake.end(second.id)
  const next = await start(prompts, { conversationId: oldest.conversationId })
  fake.end(next.id)
  // The second conversation is now the least recently active idle one.
  const third = await start(prompts, { new: true })
  const listed = prompts.listConversations().conversations.map(({ id }) => id)
  t.same(listed.sort(), [oldest, running, third].map(({ conversationId }) => conversationId).sort())
  t.equal(await submitAndDescribe(prompts, { conversationId: second.conversationId }), 'not_found')
  await t.rejects(prompts.readStatus(second.id), { code: 'not_found' })
  const again = await openPrompts(t, { fake, dir, limits: { conversations: 1 } })
  t.equal(again.prompts.listConversations().conversations.length, 2, 'those with a run in progress stay')
})

t.test('lists have at most 50 entries', async (t) => {
  const { prompts, fake } = await openPrompts(t, { limits: { runs: 64 } })
  for (let count = 0; count < 60; count++) fake.end((await start(prompts)).id)
  const { runs } = prompts.list(undefined)
  t.equal(runs.length, 50)
  t.equal(runs[0]?.id, fake.started.at(-1)?.id)
  t.equal(prompts.listConversations().conversations.length, 50)
  const first = fake.started[0]
  t.match(prompts.list(first?.conversationId).runs, [{ id: first?.id }])
  t.throws(() => prompts.list(newId('conversation')), { code: 'not_found' })
})
