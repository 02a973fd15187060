// A box is not trusted: whatever comes out of its tunnel, the coordinator and its other boxes go on.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { websocketDuplex } from '../../shared/websocket-duplex.ts'
import {
  readAll,
  startTestAgent,
  startTestCoordinator,
  type TestCoordinator,
  waitUntil,
} from '../support/tunnel.ts'

type Box = { boxId: string; token: string }

async function setUp(t: Test, helloMs = 200) {
  const coordinator = await startTestCoordinator({ handshakeTimeoutMs: helloMs })
  t.after(() => coordinator.close())
  const neighbour = coordinator.addBox()
  const agent = await startTestAgent(neighbour, coordinator.url, (app) => {
    app.get('/hello', async () => ({ hello: 'box' }))
  })
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(neighbour.boxId, 5000)
  const others = async () => {
    const { body } = await tunnel.request({ method: 'GET', path: '/hello' })
    t.same(JSON.parse((await readAll(body)).toString()), { hello: 'box' }, 'the other box is served')
  }
  return { coordinator, box: coordinator.addBox(), others }
}

function open(
  { url }: TestCoordinator,
  { boxId, token }: Box,
  headers: Record<string, string> = {},
): WebSocket {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/agent/tunnel`, {
    perMessageDeflate: false,
    headers: {
      authorization: `Bearer ${token}`,
      'boxwood-box': boxId,
      'boxwood-protocol': '1',
      'boxwood-instance': randomUUID(),
      'boxwood-agent-version': '0.0.0',
      ...headers,
    },
  })
  ws.on('error', () => undefined)
  return ws
}

async function refusal(ws: WebSocket): Promise<{ status: number | undefined; code: unknown }> {
  const [, response] = await once(ws, 'unexpected-response')
  const answer = JSON.parse((await readAll(response)).toString())
  return { status: response.statusCode, code: answer.error.code }
}

/** An agent's HTTP/2 server that does as the test says. */
async function serveRaw(
  coordinator: TestCoordinator,
  box: Box,
  onStream: (stream: ServerHttp2Stream) => void,
) {
  const ws = open(coordinator, box)
  await once(ws, 'open')
  const server = createServer({ maxSendHeaderBlockLength: 10_000_000 })
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined)
    onStream(stream)
  })
  server.on('sessionError', () => undefined)
  const duplex = websocketDuplex(ws)
  duplex.on('error', () => undefined)
  server.emit('connection', duplex)
  return ws
}

t.test('who may not connect is told why before the upgrade', async (t) => {
  const { coordinator, box } = await setUp(t)
  const other = coordinator.addBox()
  const cases: [string, Record<string, string>, number, string][] = [
    ['no token', { authorization: '' }, 401, 'unauthorized'],
    ['a wrong token', { authorization: 'Bearer bxt_wrong' }, 401, 'unauthorized'],
    ['the token of another box', { authorization: `Bearer ${other.token}` }, 401, 'unauthorized'],
    ['a box id that is none', { 'boxwood-box': '../../etc' }, 401, 'unauthorized'],
    ['a newer protocol', { 'boxwood-protocol': '3' }, 426, 'agent_protocol_unsupported'],
    ['a protocol that is no number', { 'boxwood-protocol': 'x' }, 426, 'agent_protocol_unsupported'],
    ['an endless instance id', { 'boxwood-instance': 'x'.repeat(5000) }, 400, 'bad_request'],
  ]
  for (const [what, headers, status, code] of cases) {
    t.same(await refusal(open(coordinator, box, headers)), { status, code }, what)
  }
})

t.test('garbage, text and silence end the connection, and nothing else', async (t) => {
  const { coordinator, box, others } = await setUp(t)
  const cases: [string, (ws: WebSocket) => void][] = [
    ['garbage', (ws) => ws.send(Buffer.alloc(100_000, 0xa5))],
    ['text', (ws) => ws.send('GET / HTTP/1.1\r\n\r\n')],
    ['a message above the limit', (ws) => ws.send(Buffer.alloc(5 * 1024 * 1024))],
    [
      'frames of no bytes, then garbage',
      (ws) => {
        for (let i = 0; i < 1000; i++) ws.send(Buffer.alloc(0))
        ws.send(Buffer.alloc(64, 1))
      },
    ],
    ['no HTTP/2 at all', () => undefined],
  ]
  for (const [what, misbehave] of cases) {
    const ws = open(coordinator, box)
    const closed = once(ws, 'close')
    await once(ws, 'open')
    misbehave(ws)
    await closed
    t.equal(coordinator.tunnels.current(box.boxId), undefined, what)
    await others()
  }
})

t.test('huge answer headers are an unreachable box', async (t) => {
  const { coordinator, box, others } = await setUp(t)
  for (const [what, headers] of [
    ['one huge header', { ':status': 200, 'x-huge': 'x'.repeat(200_000) }],
    [
      'a thousand headers',
      Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`x-${i}`, 'y'.repeat(100)])),
    ],
  ] as const) {
    const ws = await serveRaw(coordinator, box, (stream) => {
      stream.respond(headers)
      stream.end()
    })
    const tunnel = await coordinator.tunnels.wait(box.boxId, 5000)
    await t.rejects(
      tunnel.request({ method: 'GET', path: '/', headTimeoutMs: 2000 }),
      { code: 'box_unreachable' },
      what,
    )
    const closed = once(ws, 'close')
    ws.terminate()
    await closed
    await others()
    coordinator.tunnels.disconnect(box.boxId, 'next case')
  }
})

t.test('a flood of pings from a box that does not read piles up no answers', async (t) => {
  const { coordinator, box, others } = await setUp(t, 60_000)
  const ws = open(coordinator, box)
  await once(ws, 'open')
  ws.pause()
  const before = process.memoryUsage().rss
  const ping = Buffer.alloc(125)
  for (let sent = 0; sent < 300_000 && ws.readyState === ws.OPEN; sent++) {
    ws.ping(ping)
    if (sent % 500 === 0) await waitUntil('the pings are taken', () => ws.bufferedAmount === 0)
  }
  await others()
  t.equal(ws.readyState, ws.OPEN, 'all were taken')
  const grown = process.memoryUsage().rss - before
  ws.terminate()
  t.ok(grown < 64 * 1024 * 1024, `grew by ${grown} bytes`)
})

t.test('reports that make no sense end the connection', async (t) => {
  const { coordinator, box, others } = await setUp(t)
  const started = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: 'v' }
  const cases: [string, string][] = [
    ['not JSON', 'hello\n'],
    ['a line without end', 'x'.repeat(300_000)],
    ['a number below one', `${JSON.stringify({ type: 'report', epoch: 'e', seq: 0, report: started })}\n`],
    ['a report that is none', `${JSON.stringify({ type: 'report', epoch: 'e', seq: 1, report: 7 })}\n`],
  ]
  for (const [what, text] of cases) {
    const ws = await serveRaw(coordinator, box, (stream) => {
      stream.respond({ ':status': 200 })
      stream.write(text)
    })
    await once(ws, 'close')
    t.equal(coordinator.tunnels.current(box.boxId), undefined, what)
    await others()
  }
})

t.test('a report of a kind that only newer agents send is passed over and acknowledged', async (t) => {
  const { coordinator, box, others } = await setUp(t)
  const report = { type: 'report', epoch: 'e', seq: 7, report: { type: 'weather', sun: true } }
  const reports = new PassThrough()
  const acknowledged = Promise.withResolvers<unknown>()
  const agent = await startTestAgent(box, coordinator.url, (app) => {
    app.get('/reports', (_request, reply) => reply.send(reports))
    app.post('/reports/ack', async (request, reply) => {
      acknowledged.resolve(request.body)
      return reply.status(204).send()
    })
  })
  t.after(() => agent.close())
  reports.write(`${JSON.stringify(report)}\n`)
  t.same(await acknowledged.promise, { epoch: 'e', seq: 7 })
  t.ok(coordinator.tunnels.current(box.boxId), 'the box stays connected')
  await others()
})
