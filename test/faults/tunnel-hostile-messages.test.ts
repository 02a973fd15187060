// Agents are untrusted: whatever text messages an agent sends through its tunnel, the coordinator and its other boxes keep working.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { PREVIOUS_PROTOCOL_VERSION, PROTOCOL_HEADER } from '../../shared/protocol.ts'
import {
  type AgentMessage,
  type CoordinatorMessage,
  coordinatorMessageSchema,
  formatMessage,
  MAX_AGENT_HEAD_BYTES,
  parseMessage,
} from '../../shared/tunnel-messages.ts'
import { openTunnelSocket } from '../support/hostile-agent.ts'
import { startOtherBox, startTunnelServer } from '../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

type RequestMessage = Extract<CoordinatorMessage, { type: 'request' }>
type Respond = (request: RequestMessage, ws: WebSocket) => void

async function setUp(t: Test) {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const checkOtherBox = await startOtherBox(t, coordinator)

  /** Connects an agent that does not respond to requests for reports, and to others as the test defines. */
  async function connectAgent(respond: Respond, headers: Record<string, string> = {}) {
    const box = coordinator.addBox()
    const disconnected = new Promise<string>((resolve) =>
      coordinator.tunnels.on('disconnected', (boxId, reason) => {
        if (boxId === box.boxId) resolve(reason)
      }),
    )
    const received: CoordinatorMessage[] = []
    const ws = openTunnelSocket(coordinator.url, box, headers)
    ws.on('message', (data: Buffer<ArrayBuffer>, isBinary) => {
      if (isBinary) return
      const { head } = parseMessage(coordinatorMessageSchema, data)
      if (head.type === 'request' && head.path === '/reports/next') return
      received.push(head)
      if (head.type === 'request') respond(head, ws)
    })
    t.after(() => ws.terminate())
    const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
    return { box, ws, tunnel, received, disconnected }
  }
  return { coordinator, checkOtherBox, connectAgent }
}

const text = (head: AgentMessage | object, body = '') => formatMessage(head as AgentMessage, body)
const GET = { method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS } as const

t.test('an invalid message closes the connection', async (t) => {
  const { checkOtherBox, connectAgent } = await setUp(t)
  const respondWith = (message: string): Respond => {
    return (_request, ws) => ws.send(message)
  }
  const respondTo =
    (...messages: ((id: number) => string)[]): Respond =>
    ({ id }, ws) => {
      for (const message of messages) ws.send(message(id))
    }
  const response = (id: number) => text({ type: 'response', id, status: 200 }, '{}')
  const cases: [string, Respond, RegExp][] = [
    ['an unknown id', respondTo((id) => response(id + 100)), /unknown request/],
    ['a second response', respondTo(response, response), /unknown request/],
    ['a reset after a response', respondTo(response, (id) => text({ type: 'reset', id })), /unknown request/],
    ['no head', respondWith(''), /no head/],
    ['a head that is not JSON', respondWith('response\n'), /head of a message/],
    ['an unknown type', respondTo((id) => text({ type: 'answer', id, status: 200 })), /head of a message/],
    ['no status', respondTo((id) => text({ type: 'response', id })), /head of a message/],
    ['an id that is not a number', respondWith(text({ type: 'reset', id: '1' })), /head of a message/],
    [
      'a head with many values',
      respondTo((id) => text({ type: 'response', id, status: 200, more: Array(100).fill(0) })),
      /head of a message is not valid/,
    ],
    [
      'a head with a long text',
      respondTo((id) => text({ type: 'response', id, status: 200, more: 'x'.repeat(MAX_AGENT_HEAD_BYTES) })),
      /head of a message is too large/,
    ],
    [
      'a response above the bound',
      respondTo((id) =>
        text({ type: 'response', id, status: 200 }, 'x'.repeat(TUNNEL_LIMITS.messageBytes + 1)),
      ),
      /too large/,
    ],
    [
      'the end of no HTTP/2 session',
      respondWith(text({ type: 'http2.closed' })),
      /closed an HTTP\/2 session/,
    ],
    ['HTTP/2 without a session', (_request, ws) => ws.send(Buffer.alloc(9)), /without a session/],
    [
      '100,000 tiny messages',
      (_request, ws) => {
        for (let count = 0; count < 100_000; count++) ws.send('\n')
      },
      /head of a message/,
    ],
  ]
  for (const [name, respond, reason] of cases) {
    const { tunnel, ws, disconnected } = await connectAgent(respond)
    const closed = once(ws, 'close')
    await tunnel.call(GET).catch((error: unknown) => t.match(error, { code: 'box_unreachable' }, name))
    t.match(await disconnected, reason, name)
    await closed
    await checkOtherBox()
  }
})

t.test('a text message of an agent whose version has none closes the connection', async (t) => {
  const { checkOtherBox, coordinator } = await setUp(t)
  const headers = { [PROTOCOL_HEADER]: String(PREVIOUS_PROTOCOL_VERSION) }
  const ws = openTunnelSocket(coordinator.url, coordinator.addBox(), headers)
  const closed = once(ws, 'close')
  await once(ws, 'open')
  ws.send(text({ type: 'reset', id: 1 }))
  await closed
  await checkOtherBox()
})

t.test('an agent that does not respond occupies a limited number of ids', async (t) => {
  const { checkOtherBox, connectAgent } = await setUp(t)
  const { tunnel, received } = await connectAgent(() => undefined)
  const count = TUNNEL_LIMITS.openCalls + 20
  const timeoutMs = 50
  const calls = Array.from({ length: count }, () => tunnel.call({ ...GET, timeoutMs }))
  for (const { status, ...call } of await Promise.allSettled(calls))
    t.match({ status, ...call }, { status: 'rejected', reason: { code: 'box_unreachable' } })
  await checkOtherBox()
  const isCancel = ({ type }: CoordinatorMessage) => type === 'cancel'
  await waitUntil('the calls are cancelled', () => received.filter(isCancel).length > 100)
  const requests = received.filter((message) => !isCancel(message)).length
  t.ok(requests < TUNNEL_LIMITS.openCalls, `${requests} requests were sent as messages`)
})

t.test('a stored response that does not exist fails the call', async (t) => {
  const { checkOtherBox, connectAgent } = await setUp(t)
  const { tunnel } = await connectAgent(({ id }, ws) =>
    ws.send(text({ type: 'response', id, status: 200, isStored: true })),
  )
  await t.rejects(tunnel.call({ ...GET, timeoutMs: 200 }), { code: 'box_unreachable' })
  await checkOtherBox()
})
