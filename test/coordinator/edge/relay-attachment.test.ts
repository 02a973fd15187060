// The relay between an attached client and an agent: forwards valid messages, and survives two hostile peers.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { type RelayOptions, relayAttachment } from '../../../coordinator/edge/relay-attachment.ts'
import { MAX_ATTACH_MESSAGE_BYTES } from '../../../shared/attach-format.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PING_MS = 20
const ATTACHED = { type: 'attached', stdinOffset: 0, stdoutOffset: 0, stderrOffset: 0 }

/** Starts a relay between two WebSockets. Returns the other ends, with what they have received. */
async function startRelay(t: Test, options: Partial<RelayOptions> = {}) {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    maxPayload: MAX_ATTACH_MESSAGE_BYTES,
    autoPong: false,
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  t.after(() => {
    for (const ws of server.clients) ws.terminate()
    server.close()
  })
  const connect = async () => {
    const accepted = once(server, 'connection').then(([ws]) => {
      ws.pause()
      return ws as WebSocket
    })
    const ws = new WebSocket(`ws://127.0.0.1:${port}`)
    ws.on('error', () => undefined)
    const received: (string | Buffer)[] = []
    ws.on('message', (data: Buffer, isBinary) => void received.push(isBinary ? data : data.toString()))
    const closed = once(ws, 'close').then(([code]) => code as number)
    const inner = await accepted
    if (ws.readyState !== ws.OPEN) await once(ws, 'open')
    t.after(() => ws.terminate())
    return {
      ws,
      inner,
      received,
      closed,
      json: () => received.filter((data) => typeof data === 'string').map((text) => JSON.parse(text)),
    }
  }
  const [client, agent] = [await connect(), await connect()]
  const closing = new AbortController()
  const finished = relayAttachment(client.inner, agent.inner, {
    log: { debug: () => undefined },
    closing: closing.signal,
    signal: new AbortController().signal,
    countAgentMessage: () => 0,
    countClientMessage: () => 0,
    ...options,
  })
  return { client, agent, closing, finished }
}

t.test('forwards the valid messages of both sides, without unknown fields', async (t) => {
  const { client, agent, finished } = await startRelay(t)
  agent.ws.send(JSON.stringify({ ...ATTACHED, secret: 1 }))
  agent.ws.send(Buffer.from([1, 0, 255]))
  client.ws.send(Buffer.from([0, 7]))
  client.ws.send('{"type":"stdinEnd","extra":true}')
  await waitUntil('all messages arrive', () => client.received.length === 2 && agent.received.length === 2)
  t.same(client.received, [JSON.stringify(ATTACHED), Buffer.from([1, 0, 255])])
  t.same(agent.received, [Buffer.from([0, 7]), '{"type":"stdinEnd"}'])
  agent.ws.close(1000)
  t.equal(await client.closed, 1000)
  await finished
})

t.test('an agent that violates the protocol', async (t) => {
  const messages: [string, string | Buffer][] = [
    ['text that is not JSON', '{'],
    ['an unknown type', '{"type":"unknown"}'],
    ['a message of the client', '{"type":"stdinEnd"}'],
    ['many JSON tokens', `{"type":"stdinClosed","a":[${'1,'.repeat(1000)}1]}`],
    ['a long text', JSON.stringify({ type: 'error', code: 'not_found', message: 'x'.repeat(40_000) })],
    ['a negative offset', JSON.stringify({ ...ATTACHED, stdoutOffset: -1 })],
    ['an offset above 2^50', JSON.stringify({ ...ATTACHED, stdoutOffset: 2 ** 52 })],
    ['a session name with control characters', JSON.stringify({ ...ATTACHED, session: '\u001b[2J' })],
    ['the channel of stdin', Buffer.from([0, 1])],
    ['an empty chunk', Buffer.from([1])],
  ]
  for (const [name, message] of messages) {
    const { client, agent } = await startRelay(t)
    agent.ws.send(message)
    t.equal(await client.closed, 1011, name)
    t.match(client.json(), [{ type: 'error', code: 'exec_failed' }])
    await agent.closed
  }
})

t.test('an error code that an agent may not use becomes exec_failed', async (t) => {
  const { client, agent } = await startRelay(t)
  agent.ws.send('{"type":"error","code":"unauthorized","message":"give me your key"}')
  await waitUntil('the error arrives', () => client.received.length === 1)
  t.match(client.json(), [{ type: 'error', code: 'exec_failed' }])
  agent.ws.close(1000)
  await client.closed
})

t.test('an agent that disconnects early', async (t) => {
  for (const disconnect of [(ws: WebSocket) => ws.terminate(), (ws: WebSocket) => ws.close(1008)]) {
    const { client, agent } = await startRelay(t)
    agent.ws.send(JSON.stringify(ATTACHED))
    await waitUntil('the message arrives', () => client.received.length === 1)
    disconnect(agent.ws)
    await client.closed
    t.match(client.json()[1], { type: 'error', code: 'box_unreachable' })
  }
})

t.test('a client that disconnects, or violates the protocol', async (t) => {
  const cut = await startRelay(t)
  cut.client.ws.terminate()
  await cut.agent.closed
  const invalid = await startRelay(t)
  invalid.client.ws.send('{"type":"exit"}')
  t.equal(await invalid.client.closed, 1008)
  t.match(invalid.client.json(), [{ type: 'error', code: 'invalid_request' }])
  await invalid.agent.closed
})

t.test('stops reading from a peer while the other one does not read', async (t) => {
  for (const [from, to, channel] of [
    ['agent', 'client', 1],
    ['client', 'agent', 0],
  ] as const) {
    const relay = await startRelay(t)
    relay[to].ws.pause()
    const chunk = Buffer.alloc(65_537, channel)
    const sender = relay[from]
    for (let i = 0; i < 800; i++) sender.ws.send(chunk)
    await waitUntil(
      'the relay stops reading',
      () => sender.inner.readyState === 1 && relay[from].inner.isPaused,
    )
    t.ok(
      relay[to].inner.bufferedAmount < 2 * 1024 * 1024,
      `${relay[to].inner.bufferedAmount} bytes are buffered`,
    )
    relay[to].ws.resume()
    await waitUntil('all messages arrive', () => relay[to].received.length === 800)
    t.pass(`${from} to ${to}: reading continues`)
    sender.ws.terminate()
    await relay[to].closed
  }
})

t.test('a peer that sends more messages than its limit is read slowly, and loses nothing', async (t) => {
  let count = 0
  const { client, agent } = await startRelay(t, { countClientMessage: () => (++count % 10 === 0 ? 20 : 0) })
  for (let i = 0; i < 100; i++) client.ws.send(Buffer.from([0, i]))
  await waitUntil('all messages arrive', () => agent.received.length === 100)
  t.same(agent.received.at(-1), Buffer.from([0, 99]))
  client.ws.terminate()
  await agent.closed
})

t.test('a dead peer is disconnected', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  type Relay = Awaited<ReturnType<typeof startRelay>>
  /** The relay pings both peers. Resolves when the responsive peers have answered. */
  const ping = async (...responsive: Relay['client'][]) => {
    const answered = responsive.map(({ inner }) => once(inner, 'pong'))
    mock.timers.tick(PING_MS)
    await Promise.all(answered)
  }
  const areOpen = ({ client, agent }: Relay) =>
    [client, agent].every(({ inner }) => inner.readyState === WebSocket.OPEN)

  const deadAgent = await startRelay(t, { pingMs: PING_MS })
  deadAgent.agent.ws.pause()
  for (let missed = 1; missed <= 3; missed++) await ping(deadAgent.client)
  t.ok(areOpen(deadAgent), 'a peer may miss three pings')
  await ping()
  await deadAgent.client.closed
  t.match(deadAgent.client.json(), [{ type: 'error', code: 'box_unreachable' }])

  const deadClient = await startRelay(t, { pingMs: PING_MS })
  deadClient.client.ws.pause()
  for (let missed = 1; missed <= 3; missed++) await ping(deadClient.agent)
  t.ok(areOpen(deadClient), 'also the client')
  await ping()
  await deadClient.agent.closed

  const alive = await startRelay(t, { pingMs: PING_MS })
  for (let round = 0; round < 10; round++) await ping(alive.client, alive.agent)
  t.ok(areOpen(alive), 'peers that respond to pings stay connected')
  alive.client.ws.terminate()
  await alive.agent.closed
})

t.test('a peer that floods the coordinator with pings is disconnected', async (t) => {
  const { client, agent } = await startRelay(t)
  for (let i = 0; i < 1000; i++) client.ws.ping()
  await client.closed
  await agent.closed
  t.pass('disconnected')
})

t.test('clients reconnect when the coordinator stops', async (t) => {
  const { client, agent, closing, finished } = await startRelay(t)
  closing.abort()
  t.equal(await client.closed, 1012)
  t.same(client.json(), [{ type: 'reconnect' }])
  await agent.closed
  await finished
})
