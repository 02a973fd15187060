// The routes of prompts: validation, status codes, and clients that disconnect.
import t, { type Test } from 'tap'
import { promptRoutes } from '../../../agent/prompts/routes.ts'
import type { Prompts } from '../../../agent/prompts/types.ts'
import { createJsonRouter, type JsonMethod } from '../../../agent/requests/json-routes.ts'
import { newId } from '../../../shared/ids.ts'
import { callRoute } from '../../support/agent-routes.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createPromptRequest, openPrompts } from './prompts-support.ts'

async function serve(t: Test) {
  const { prompts, fake } = await openPrompts(t)
  let waiting = 0
  /** Counts the requests that wait. */
  const count = async <T>(promise: Promise<T>): Promise<T> => {
    waiting++
    return promise.finally(() => waiting--)
  }
  const counted: Prompts = {
    ...prompts,
    poll: (request, signal) => count(prompts.poll(request, signal)),
    readEvents: (id, options) => count(prompts.readEvents(id, options)),
  }
  const stopping = new AbortController()
  let touches = 0
  const activity = { touch: () => void touches++ }
  const deps = { prompts: counted, activity, stopping: stopping.signal }
  const router = createJsonRouter()
  promptRoutes(router, deps)
  const send = (method: JsonMethod, path: string, body?: unknown, signal?: AbortSignal) =>
    callRoute(router, { method, path, body, ...(signal && { signal }) })
  const request = async (method: JsonMethod, path: string, body?: unknown) => {
    const { status, text } = await send(method, path, body)
    return { status, body: JSON.parse(text) }
  }
  return {
    fake,
    stopping,
    send,
    request,
    getWaiting: () => waiting,
    getTouches: () => touches,
  }
}

t.test('prompts are submitted, listed, read and interrupted', async (t) => {
  const { request, fake, getTouches } = await serve(t)
  const first = createPromptRequest({ boxEnv: { A: '1' } })
  t.match(await request('POST', '/prompts', first), { status: 200, body: { type: 'prompt.started' } })
  const next = createPromptRequest({ queue: true })
  t.match(await request('POST', '/prompts', next), { status: 200, body: { type: 'prompt.queued' } })
  t.equal(getTouches(), 2)
  const [id, conversation] = [first.runId, first.newConversationId]
  fake.emit(id, ['a', 'b', 'c'])
  t.match(await request('GET', '/prompts'), { body: { type: 'prompt.list', runs: [{ id }], queued: [{}] } })
  t.match(await request('GET', `/prompts?conversation=${conversation}`), { body: { runs: [{ id }] } })
  t.match(await request('GET', '/prompts/conversations'), { body: { conversations: [{ id: conversation }] } })
  t.match(await request('GET', `/prompts/${id}`), { body: { type: 'prompt.status', run: { id } } })
  t.match(await request('GET', `/prompts/${id}/events?after=1&limit=1`), {
    body: { type: 'prompt.events', events: [{ seq: 2, text: 'b' }], next: 2, finished: false },
  })
  const poll = { after: { [id]: 2 }, waitMs: 15_000 }
  t.match(await request('POST', '/prompts/poll', poll), {
    body: { runs: [{ events: [{ seq: 3 }] }], active: 2 },
  })
  t.match(await request('POST', `/prompts/${next.runId}/interrupt`), {
    status: 200,
    body: { dequeued: true },
  })
  t.match(await request('POST', `/prompts/interrupt?conversation=${conversation}`), {
    body: { id, interrupted: [{ id }], wasRunning: true },
  })
  t.match(await request('POST', '/prompts/interrupt'), { body: { id: null, interrupted: [] } })
})

t.test('invalid requests get the codes of the spec', async (t) => {
  const { request, fake } = await serve(t)
  for (const [fields, code] of [
    [{ provider: 'gemini' }, 'invalid_provider'],
    [{ provider: undefined }, 'invalid_provider'],
    [{ prompt: ' \n' }, 'prompt_required'],
    [{ prompt: undefined }, 'prompt_required'],
    [{ model: '-x' }, 'invalid_request'],
    [{ reasoningEffort: 'extreme' }, 'invalid_request'],
    [{ cwd: 'a\nb' }, 'invalid_request'],
    [{ boxEnv: { 'NOT VALID': '' } }, 'invalid_request'],
    [{ new: true, continue: true }, 'invalid_request'],
    [{ continue: true }, 'no_session_to_continue'],
    [{ conversationId: newId('conversation') }, 'not_found'],
    [{ prompt: 'x'.repeat(600_000) }, 'payload_too_large'],
  ] as const) {
    const { body } = await request('POST', '/prompts', { ...createPromptRequest(), ...fields })
    t.match(body, { ok: false, error: { code } }, JSON.stringify(fields).slice(0, 80))
  }
  t.equal(fake.started.length, 0)
  const unknown = newId('run')
  for (const [method, path] of [
    ['GET', `/prompts/${unknown}`],
    ['GET', `/prompts/${unknown}/events`],
    ['POST', `/prompts/${unknown}/interrupt`],
    ['GET', `/prompts?conversation=${newId('conversation')}`],
    ['POST', '/prompts/interrupt?conversation=x'],
  ] as const)
    t.match(await request(method, path), { status: 404, body: { error: { code: 'not_found' } } }, path)
  t.match(await request('GET', `/prompts/${unknown}/events?limit=1001`), { status: 400 })
  t.match(await request('POST', '/prompts/poll', { after: { x: 1 }, waitMs: 0 }), { status: 400 })
})

t.test('a client that disconnects ends its wait', async (t) => {
  const { request, send, getWaiting } = await serve(t)
  const { runId } = createPromptRequest()
  await request('POST', '/prompts', createPromptRequest({ runId }))
  const controller = new AbortController()
  const { signal } = controller
  const responses = Promise.all([
    send('GET', `/prompts/${runId}/events?waitMs=15000`, undefined, signal),
    send('POST', '/prompts/poll', { after: { [runId]: 0 }, waitMs: 15_000 }, signal),
  ])
  await waitUntil('both wait', () => getWaiting() === 2)
  controller.abort()
  await waitUntil('no request waits', () => getWaiting() === 0)
  await responses
})

t.test('an agent that stops accepts no prompt', async (t) => {
  const { send, stopping, fake } = await serve(t)
  stopping.abort()
  await t.rejects(send('POST', '/prompts', createPromptRequest()), { message: /stopping/ })
  t.equal(fake.started.length, 0)
})
