// The agent's end of a tunnel: what it sends, and which messages of a coordinator it refuses.
import { once } from 'node:events'
import t from 'tap'
import { createJsonRouter } from '../../../agent/requests/json-routes.ts'
import { MessageServer } from '../../../agent/requests/message-server.ts'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import { CHUNKS_PROTOCOL_VERSION } from '../../../shared/protocol.ts'
import {
  type AgentMessage,
  agentMessageSchema,
  type CoordinatorMessage,
  parseMessage,
} from '../../../shared/tunnel-messages.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

const MiB = 1024 * 1024
const LARGE = 'x'.repeat(3 * MiB)
const GET = { type: 'request', method: 'GET', path: '/small' } as const

function open(protocolVersion = CHUNKS_PROTOCOL_VERSION) {
  const router = createJsonRouter()
  const started: string[] = []
  router.add('GET', '/small', () => 1)
  router.add('GET', '/large', () => LARGE)
  router.add('POST', '/size', ({ body }) => String(body).length)
  router.add('GET', '/never', () => new Promise(() => undefined))
  router.add('GET', '/wait', async ({ signal, afterResponse }) => {
    started.push('wait')
    afterResponse(() => started.push('sent'))
    if (!signal.aborted) await once(signal, 'abort')
    return LARGE
  })
  const sent: { head: AgentMessage; body: Buffer; isBinary: boolean }[] = []
  const server = new MessageServer({
    router,
    log: silentLog,
    protocolVersion,
    send(message, isBinary, onDone) {
      sent.push({ ...parseMessage(agentMessageSchema, Buffer.from(message as Buffer)), isBinary })
      setImmediate(onDone)
    },
  })
  const receive = (head: CoordinatorMessage, body: string | Buffer = '') =>
    server.receive(head, Buffer.from(body as Buffer))
  const last = () => sent.at(-1)?.head
  return { server, receive, sent, started, last }
}

t.test('sends a large response within its window, in binary messages', async (t) => {
  const { receive, sent, last } = open()
  const size = LARGE.length + 2
  receive({ ...GET, id: 1, path: '/large' })
  await waitUntil('the agent responds', () => sent.length === 1)
  t.same(sent[0], {
    head: { type: 'response', id: 1, status: 200, size },
    body: Buffer.alloc(0),
    isBinary: false,
  })
  receive({ type: 'window', id: 1, bytes: MiB })
  const received = () => sent.slice(1).reduce((sum, { body }) => sum + body.length, 0)
  await waitUntil('the window is used', () => received() === MiB)
  receive({ ...GET, id: 2 })
  await waitUntil('another request is served meanwhile', () => last()?.type === 'response')
  t.equal(received() - 1, MiB, 'nothing is sent beyond the window')
  receive({ type: 'window', id: 1, bytes: size - MiB })
  await waitUntil('the rest is sent', () => received() - 1 === size)
  t.ok(sent.every(({ head, isBinary }) => isBinary === (head.type === 'chunk')))
})

t.test('cancelled requests are answered once', async (t) => {
  const { receive, sent, started, last } = open()
  receive({ ...GET, id: 1, path: '/large' })
  await waitUntil('the agent responds', () => sent.length === 1)
  receive({ type: 'cancel', id: 1 })
  t.same(last(), { type: 'reset', id: 1 }, 'the rest of the response does not follow')

  receive({ type: 'request', id: 2, method: 'POST', path: '/size', size: MiB })
  t.match(last(), { type: 'window', id: 2 })
  receive({ type: 'cancel', id: 2 })
  t.same(last(), { type: 'reset', id: 2 }, 'the request was not executed')
  t.throws(() => receive({ type: 'chunk', id: 2 }, 'x'), { message: /not requested/ })

  receive({ ...GET, id: 3, path: '/wait' })
  receive({ type: 'cancel', id: 3 })
  await waitUntil('the work has stopped', () => started.includes('sent'))
  t.same(last(), { type: 'reset', id: 3 }, 'the large response is not needed')

  const count = sent.length
  for (const id of [1, 2, 3, 4]) receive({ type: 'cancel', id })
  t.equal(sent.length, count, 'a request that is complete is not answered again')
})

t.test('a request body is bounded', async (t) => {
  const { receive, sent, last } = open()
  const { requestBytes, messageBytes } = TUNNEL_LIMITS
  receive({ type: 'request', id: 1, method: 'POST', path: '/size', size: requestBytes + 1 })
  t.match(last(), { type: 'response', id: 1, status: 413 })
  const body = JSON.stringify('é'.repeat(MiB))
  const bytes = Buffer.from(body)
  receive({ type: 'request', id: 2, method: 'POST', path: '/size', size: bytes.length })
  let granted = 0
  let at = 0
  while (at < bytes.length) {
    granted = sent.reduce((sum, { head }) => sum + (head.type === 'window' ? head.bytes : 0), 0)
    t.ok(granted - at <= MiB)
    const chunk = bytes.subarray(at, Math.min(at + messageBytes, granted))
    receive({ type: 'chunk', id: 2 }, chunk)
    at += chunk.length
  }
  t.equal(granted, bytes.length)
})

t.test('refuses what no correct coordinator sends', async (t) => {
  const { receive, server } = open()
  receive({ ...GET, id: 1, path: '/never' })
  t.throws(() => receive({ ...GET, id: 1 }), { message: /too many requests/ }, 'an id that is in use')
  t.throws(() => receive({ type: 'chunk', id: 1 }, 'x'), { message: /not requested/ })
  receive({ type: 'window', id: 99, bytes: 1 })
  let count = 1
  t.throws(
    () => {
      for (; count < 10_000; count++) receive({ ...GET, id: count + 1, path: '/never' })
    },
    { message: /too many requests/ },
  )
  t.equal(count, 2 * TUNNEL_LIMITS.openCalls)
  server.close()
})

t.test('a coordinator without chunks gets an error for a large response', async (t) => {
  const { receive, sent } = open(CHUNKS_PROTOCOL_VERSION - 1)
  receive({ ...GET, id: 1, path: '/large' })
  await waitUntil('the agent responds', () => sent.length === 1)
  t.match(sent[0], { head: { type: 'response', id: 1, status: 500 }, body: { length: 0 } })
})
