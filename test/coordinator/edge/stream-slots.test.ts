// A stream releases its slot, and closes the agent's connection, however it ends.

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import type { Streams, TunnelCall } from '../../../coordinator/agents/tunnel/types.ts'
import { ApiError } from '../../../shared/errors.ts'
import { encodeFrame, type StreamFrame } from '../../../shared/stream-frames.ts'
import { type AgentHandler, startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ID = 'p_0123456789abcdef01234567'
const START = { stdoutOffset: 0, stderrOffset: 0 }
const ATTACHED: StreamFrame = { event: 'attached', ...START, processId: ID }
const EXIT: StreamFrame = {
  event: 'exit',
  ...START,
  status: 'exited',
  exitCode: 0,
  signal: null,
  timedOut: false,
}
const ATTACHED_EVENT = `event: attached\nid: 0:0\ndata: {"processId":"${ID}","stdoutOffset":0,"stderrOffset":0}\n\n`
const EXIT_EVENT =
  'event: exit\nid: 0:0\ndata: {"status":"exited","exitCode":0,"signal":null,"timedOut":false,"stdoutOffset":0,"stderrOffset":0}\n\n'

/** Dial-back connections that are open immediately and start with an attached frame. */
function createFakeStreams() {
  const connections: PassThrough[] = []
  const streams: Streams = {
    expect() {
      const connection = new PassThrough({ objectMode: true })
      connection.write(encodeFrame(ATTACHED))
      connections.push(connection)
      return {
        id: `connection-${connections.length}`,
        connection: Promise.resolve(connection),
        discard: () => void connection.destroy(),
      }
    },
  }
  return { streams, connections }
}

/** A box whose agent accepts every stream, or calls `handle`. `requests` and `connections` are live arrays. */
async function startBox(t: Test, handle?: AgentHandler) {
  const requests: TunnelCall[] = []
  const { streams, connections } = createFakeStreams()
  const boxWithAgent = await startBoxWithFakeAgent(
    t,
    async (request) => {
      requests.push(request)
      if (handle) return handle(request)
      if (!request.path.includes('/stream')) throw new ApiError('box_unreachable')
      return { status: 200, body: Buffer.alloc(0) }
    },
    { env: limitsEnv({ edgeRequestsPerSecond: 1000 }), streams },
  )
  const { url, key } = boxWithAgent
  const path = `${url}/v1/box/${boxWithAgent.box.hostname}/exec/${ID}/stream`
  /** Opens a stream. The request can be destroyed before its response. */
  const open = (headers: Record<string, string> = {}) => {
    const request = get(path, { agent: false, headers: { authorization: `Bearer ${key}`, ...headers } })
    request.on('error', () => undefined)
    const response = once(request, 'response').then(([message]) => {
      message.on('error', () => undefined)
      return message as IncomingMessage
    })
    response.catch(() => undefined)
    return { request, response }
  }
  const waitForReleasedSlots = () =>
    waitUntil('every slot is released', () => boxWithAgent.acquiredSlots() === 0)
  return { ...boxWithAgent, requests, connections, open, waitForReleasedSlots }
}

const readText = async (response: IncomingMessage) => Buffer.concat(await response.toArray()).toString()
const last = <T>(items: readonly T[]): T => {
  const item = items.at(-1)
  if (item === undefined) throw new Error('the agent got no request')
  return item
}

t.test("closes the agent's connection when the client disconnects before the agent responds", async (t) => {
  const { open, requests, connections, waitForReleasedSlots } = await startBox(
    t,
    ({ signal }) =>
      new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  )
  const { request } = open()
  await waitUntil('the agent has the request', () => requests.length === 1)
  request.destroy()
  await waitForReleasedSlots()
  await waitUntil('the connection is closed', () => last(connections).destroyed)
  t.equal(connections.length, 1)
})

t.test('releases the slot after exit, a disconnect of either side, and an invalid frame', async (t) => {
  const { open, acquiredSlots, waitForReleasedSlots, connections, requests } = await startBox(t)

  const complete = open()
  const response = await complete.response
  t.match(response, {
    statusCode: 200,
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  })
  t.notOk(response.headers['content-encoding'])
  t.equal(acquiredSlots(), 1, 'an open stream holds a slot')
  last(connections).end(encodeFrame(EXIT))
  t.equal(await readText(response), ATTACHED_EVENT + EXIT_EVENT)
  await waitForReleasedSlots()
  t.match(last(requests), {
    method: 'GET',
    path: new RegExp(`^/exec/${ID}/stream\\?`),
    headers: { 'last-event-id': '0:0' },
  })

  const disconnecting = open({ 'last-event-id': '12:34', 'accept-encoding': 'gzip' })
  t.notOk((await disconnecting.response).headers['content-encoding'], 'never compressed')
  t.match(last(requests).headers, { 'last-event-id': '12:34' })
  disconnecting.request.destroy()
  await waitForReleasedSlots()
  await waitUntil("the agent's connection is closed", () => last(connections).destroyed)

  const interrupted = open()
  const interruptedResponse = await interrupted.response
  last(connections).destroy(new ApiError('box_unreachable'))
  t.match(await readText(interruptedResponse), /event: error\nid: 0:0\ndata: \{"code":"box_unreachable"/)
  await waitForReleasedSlots()

  const invalid = open()
  const invalidResponse = await invalid.response
  last(connections).write(Buffer.from('not a frame'))
  t.match(await readText(invalidResponse), /event: error\nid: 0:0\ndata: \{"code":"exec_failed"/)
  await waitUntil("the agent's connection is closed", () => last(connections).destroyed)
  await waitForReleasedSlots()
})

t.test('releases the slot of a client that disconnects before the response', async (t) => {
  let wasReset = false
  const { open, acquiredSlots, waitForReleasedSlots, requests } = await startBox(
    t,
    ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => {
          wasReset = true
          reject(signal.reason)
        })
      }),
  )
  const { request } = open()
  await waitUntil('the agent gets the request', () => requests.length === 1)
  t.equal(acquiredSlots(), 1)
  request.destroy()
  await waitForReleasedSlots()
  await waitUntil("the agent's request is reset", () => wasReset)
})

t.test('releases the slot when the response is an error or invalid, or the box unreachable', async (t) => {
  const respond = (status: number, body: string) => async () => ({ status, body: Buffer.from(body) })
  const errorBody = (code: string) => JSON.stringify({ ok: false, error: { code, message: 'no' } })
  const cases: [AgentHandler, number, string][] = [
    [respond(404, errorBody('not_found')), 404, 'not_found'],
    [respond(500, errorBody('unauthorized')), 502, 'exec_failed'],
    [respond(500, 'not JSON'), 502, 'exec_failed'],
    [() => Promise.reject(new ApiError('box_unreachable')), 502, 'box_unreachable'],
  ]
  const remaining = [...cases]
  const { open, waitForReleasedSlots } = await startBox(t, (request) => {
    const [handle] = remaining.shift() ?? []
    if (!handle) throw new Error('too many requests')
    return handle(request)
  })
  for (const [, status, code] of cases) {
    const response = await open().response
    t.equal(response.statusCode, status)
    t.match(JSON.parse(await readText(response)), { ok: false, error: { code } })
    await waitForReleasedSlots()
  }
})

t.test('an invalid Last-Event-ID is rejected before a slot is acquired', async (t) => {
  const { open, requests, acquiredSlots } = await startBox(t)
  for (const id of ['5', 'a:b', '1:2:3', '-1:0', '1:2, 3:4', `${'9'.repeat(16)}:0`]) {
    const response = await open({ 'last-event-id': id }).response
    t.equal(response.statusCode, 400, id)
    t.match(JSON.parse(await readText(response)), { error: { code: 'invalid_request' } })
  }
  t.equal(acquiredSlots(), 0)
  t.equal(requests.length, 0)
})

t.test('the fifth stream is rejected until another one ends', async (t) => {
  const { open, acquiredSlots, waitForReleasedSlots, edge, box } = await startBox(t)
  const four = Array.from({ length: 4 }, () => open())
  for (const { response } of four) t.equal((await response).statusCode, 200)
  const fifth = await open().response
  t.equal(fifth.statusCode, 429)
  t.match(JSON.parse(await readText(fifth)), { ok: false, error: { code: 'rate_limited' } })
  t.equal(fifth.headers['retry-after'], '1', 'a stream may end at any time')
  t.equal((await edge(box.hostname, 'GET', '/exec')).status, 502, 'another request still reaches the box')
  four[0]?.request.destroy()
  await waitUntil('its slot is released', () => acquiredSlots() === 3)
  const next = open()
  t.equal((await next.response).statusCode, 200)
  for (const { request } of [...four, next]) request.destroy()
  await waitForReleasedSlots()
})

t.test(
  'a draining coordinator ends its streams with a reconnect event, without waiting for them',
  async (t) => {
    const { open, instance: coordinator, connections, waitForReleasedSlots } = await startBox(t)
    const first = await open().response
    const second = await open({ 'last-event-id': '3:4' }).response
    const draining = coordinator.drain(60_000)
    const reconnect = (id: string) => new RegExp(`event: reconnect\\nid: ${id}\\ndata: \\{"stdoutOffset":`)
    t.match(await readText(first), reconnect('0:0'))
    t.match(await readText(second), reconnect('0:0'))
    await draining
    await waitUntil('the connections are closed', () =>
      connections.every((connection) => connection.destroyed),
    )
    await waitForReleasedSlots()
  },
)
