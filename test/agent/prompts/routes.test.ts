// The HTTP routes of prompts: validation, status codes, and clients that disconnect.
import { once } from 'node:events'
import { type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { buildAgentApp } from '../../../agent/app.ts'
import { promptRoutes } from '../../../agent/prompts/routes.ts'
import type { Prompts } from '../../../agent/prompts/types.ts'
import { newId } from '../../../shared/ids.ts'
import { readAll, silentLog } from '../../support/tunnel.ts'
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
  const app = buildAgentApp({
    log: silentLog,
    routes: [(scope) => promptRoutes(scope, deps)],
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  t.teardown(async () => {
    session.destroy()
    await app.close()
  })
  const send = (method: string, path: string, body?: unknown): ClientHttp2Stream => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const stream = session.request({ ':method': method, ':path': path, ...headers })
    return stream.end(body === undefined ? undefined : JSON.stringify(body))
  }
  const request = async (method: string, path: string, body?: unknown) => {
    const stream = send(method, path, body)
    const [headers] = await once(stream, 'response')
    return { status: headers[':status'], body: JSON.parse((await readAll(stream)).toString()) }
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
  const streams = [
    send('GET', `/prompts/${runId}/events?waitMs=15000`),
    send('POST', '/prompts/poll', { after: { [runId]: 0 }, waitMs: 15_000 }),
  ]
  await waitUntil('both wait', () => getWaiting() === 2)
  for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
  await waitUntil('no request waits', () => getWaiting() === 0)
})

t.test('an agent that stops accepts no prompt', async (t) => {
  const { send, stopping, fake } = await serve(t)
  stopping.abort()
  const stream = send('POST', '/prompts', createPromptRequest())
  await t.rejects(once(stream, 'response'))
  t.equal(fake.started.length, 0)
})
