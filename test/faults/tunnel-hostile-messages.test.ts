// Agents are untrusted: whatever text messages an agent sends through its tunnel, the coordinator and its other boxes keep working.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
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
    ws.on('message', (data: Buffer<ArrayBuffer>) => {
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
const MiB = 1024 * 1024
const SIZED = { type: 'response', status: 200, size: 1000 }
const NOT_REQUESTED = /chunk that was not requested/
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
    ['random bytes', (_request, ws) => ws.send(Buffer.alloc(100, 0xa5)), /no head/],
    ['a size and a body', respondTo((id) => text({ ...SIZED, id }, 'x')), /a size and a body/],
    ['a size of 0', respondTo((id) => text({ ...SIZED, id, size: 0 })), /head of a message/],
    [
      'two sizes',
      respondTo(
        (id) => text({ ...SIZED, id }),
        (id) => text({ ...SIZED, id }),
      ),
      /second response/,
    ],
    ['a chunk of an unknown request', respondTo(() => text({ type: 'chunk', id: 99 }, 'x')), NOT_REQUESTED],
    [
      'more bytes than the size',
      respondTo(
        (id) => text({ ...SIZED, id }),
        (id) => text({ type: 'chunk', id }, 'x'.repeat(600)),
        (id) => text({ type: 'chunk', id }, 'x'.repeat(600)),
      ),
      NOT_REQUESTED,
    ],
    [
      'a chunk of a refused body',
      respondTo(
        (id) => text({ ...SIZED, id, size: 2 ** 50 }),
        (id) => text({ type: 'chunk', id }, 'x'),
      ),
      NOT_REQUESTED,
    ],
    ['a chunk of a request', respondTo((id) => text({ type: 'chunk', id }, 'x')), NOT_REQUESTED],
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
    await tunnel
      .call(GET)
      .catch((error: unknown) => t.match(error, { code: /^(box_unreachable|exec_failed)$/ }, name))
    t.match(await disconnected, reason, name)
    await closed
    await checkOtherBox()
  }
})

t.test('an agent that does not respond occupies a limited number of ids', async (t) => {
  const { checkOtherBox, connectAgent } = await setUp(t)
  const { tunnel, received } = await connectAgent(() => undefined)
  /** The request for reports occupies one. */
  const freeIds = TUNNEL_LIMITS.openCalls - 1
  const count = freeIds + 20
  const timeoutMs = 50
  const calls = Array.from({ length: count }, () => tunnel.call({ ...GET, timeoutMs }))
  for (const { status, ...call } of await Promise.allSettled(calls))
    t.match({ status, ...call }, { status: 'rejected', reason: { code: 'box_unreachable' } })
  await checkOtherBox()
  const isCancel = ({ type }: CoordinatorMessage) => type === 'cancel'
  await waitUntil('the calls are cancelled', () => received.filter(isCancel).length === freeIds)
  const requests = received.filter((message) => !isCancel(message)).length
  t.equal(requests, freeIds, 'the others waited')
})

t.test('large bodies that are not sent occupy a limited number of bytes', async (t) => {
  const { checkOtherBox, connectAgent } = await setUp(t)
  const size = 32 * MiB
  const { tunnel, received } = await connectAgent(({ id }, ws) => ws.send(text({ ...SIZED, id, size })))
  const calls = Array.from({ length: 20 }, () =>
    tunnel.call({ ...GET, timeoutMs: 500, maxBytes: () => size }),
  )
  for (const { status } of await Promise.allSettled(calls)) t.equal(status, 'rejected')
  const windows = received.filter(({ type }) => type === 'window')
  // Two of 32 MiB at a time. The agent resets none of them, so the windows of all are sent, one after the other.
  t.ok(windows.length <= 20, `${windows.length} windows`)
  for (const window of windows) t.match(window, { bytes: MiB })
  await checkOtherBox()
})

t.test('a response in chunks of one byte is a flood', async (t) => {
  const { connectAgent } = await setUp(t)
  const { tunnel, ws, disconnected } = await connectAgent(({ id }) => {
    ws.send(text({ ...SIZED, id, size: 60_000 }))
  })
  ws.on('message', (data: Buffer<ArrayBuffer>) => {
    const { head } = parseMessage(coordinatorMessageSchema, data)
    if (head.type !== 'window') return
    const chunk = text({ type: 'chunk', id: head.id }, 'x')
    for (let sent = 0; sent < 60_000; sent++) ws.send(chunk)
  })
  await t.rejects(tunnel.call(GET), { code: 'box_unreachable' })
  t.match(await disconnected, /too many messages/)
})
