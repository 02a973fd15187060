// WebSockets of programs on a box through the broker, such as those of coding agents.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws'
import { BrokerError } from '../../../../coordinator/edge/secret-broker/broker-error.ts'
import { Matcher } from '../../../../coordinator/edge/secret-broker/scrub/matcher.ts'
import { createNeedles } from '../../../../coordinator/edge/secret-broker/scrub/needles.ts'
import { WebSocketScrubStream } from '../../../../coordinator/edge/secret-broker/scrub/scrub-websocket.ts'
import { send } from '../../../support/broker/send.ts'
import {
  HOST,
  PLACEHOLDER,
  startBroker,
  type TestBroker,
  VALUE,
} from '../../../support/broker/start-broker.ts'

const STARS = '*'.repeat(VALUE.length)

/** Sends each message back, and first the headers of the request. */
function serveEcho(t: Test, { upstream }: TestBroker): WebSocketServer {
  const server = new WebSocketServer({ server: upstream.http, perMessageDeflate: true })
  server.on('connection', (ws, { headers }) => {
    ws.send(JSON.stringify(headers))
    ws.on('message', (data, isBinary) => ws.send(data, { binary: isBinary }))
    ws.on('ping', () => undefined)
  })
  t.teardown(() => server.close())
  return server
}

async function open(t: Test, broker: TestBroker, options: ClientOptions = {}) {
  const socket = await broker.connect()
  const ws = new WebSocket(`ws://${HOST}/v1/responses`, {
    headers: { authorization: `Bearer ${PLACEHOLDER}` },
    ...options,
    createConnection: () => socket,
  })
  ws.on('error', () => undefined)
  t.teardown(() => ws.terminate())
  const [hello] = (await once(ws, 'message')) as [Buffer]
  return { ws, headers: JSON.parse(hello.toString()) }
}

const receive = async (ws: WebSocket): Promise<string> => String((await once(ws, 'message'))[0])

t.test('the host gets the value in the handshake, and its messages are masked and not delayed', async (t) => {
  const broker = await startBroker(t)
  serveEcho(t, broker)
  const { ws, headers } = await open(t, broker)
  t.equal(headers.authorization, `Bearer ${STARS}`)
  t.equal(headers['sec-websocket-extensions'], undefined, 'frames are not compressed')
  t.equal(ws.extensions, '')
  t.same(broker.secrets.uses.length, 1)
  for (const [sent, received = sent] of [
    ['s'],
    [VALUE.slice(0, -1)],
    [`{"a":"${VALUE}"}`, `{"a":"${STARS}"}`],
    [`${VALUE}${VALUE} é`, `${STARS}${STARS} é`],
    ['x'.repeat(200_000)],
  ] as [string, string?][]) {
    ws.send(sent)
    t.equal(await receive(ws), received)
  }
  ws.ping(VALUE)
  t.equal(String((await once(ws, 'pong'))[0]), STARS)
  ws.close(4321, 'bye')
  t.same(await once(ws, 'close'), [4321, Buffer.from('bye')])
})

t.test('a refusal of the handshake arrives, and another upgrade is a plain request', async (t) => {
  const broker = await startBroker(t, {
    listener: (request, response) => response.end(request.headers.upgrade ?? 'none'),
  })
  broker.upstream.http.on('upgrade', (_, socket) => {
    socket.end(`HTTP/1.1 401 No\r\nContent-Length: ${VALUE.length}\r\n\r\n${VALUE}`)
  })
  const socket = await broker.connect()
  const ws = new WebSocket(`ws://${HOST}/`, { createConnection: () => socket })
  ws.on('error', () => undefined)
  const [, response] = await once(ws, 'unexpected-response')
  t.equal(response.statusCode, 401)
  t.equal((await response.toArray()).join(''), STARS)
  ws.terminate()
  t.equal((await send(broker, { headers: { connection: 'upgrade', upgrade: 'h2c' } })).text, 'none')
})

/** The frames that a server sends. Their payloads have less than 64 KiB. */
function createFrames(
  messages: readonly [data: string, options: { fin: boolean; opcode: number }][],
): Buffer {
  return Buffer.concat(
    messages.map(([data, { fin, opcode }]) => {
      const payload = Buffer.from(data)
      const { length } = payload
      const header = length < 126 ? [length] : [126, length >> 8, length & 0xff]
      return Buffer.concat([Buffer.from([(fin ? 0x80 : 0) | opcode, ...header]), payload])
    }),
  )
}

const matchers = [new Matcher(createNeedles([VALUE], 64 * 1024) ?? [])]

function scrub(chunks: readonly Buffer[]): Buffer {
  const stream = new WebSocketScrubStream(matchers)
  for (const chunk of chunks) stream.write(Buffer.from(chunk))
  return stream.read() ?? Buffer.alloc(0)
}

const [TEXT, CONTINUATION, CLOSE, PING] = [1, 0, 8, 9]

t.test(
  'frames are masked wherever they are split, also a value in several frames of a message',
  async (t) => {
    const half = VALUE.slice(0, 10)
    const frames = createFrames([
      [`a ${VALUE} b`, { fin: true, opcode: TEXT }],
      [half, { fin: true, opcode: TEXT }],
      [`x${half}`, { fin: false, opcode: TEXT }],
      ['', { fin: false, opcode: CONTINUATION }],
      [VALUE, { fin: true, opcode: PING }],
      [`${VALUE.slice(10)}y`.padEnd(200, 'z'), { fin: true, opcode: CONTINUATION }],
      ['', { fin: true, opcode: TEXT }],
      [VALUE, { fin: true, opcode: CLOSE }],
    ])
    const expected = createFrames([
      [`a ${STARS} b`, { fin: true, opcode: TEXT }],
      [half, { fin: true, opcode: TEXT }],
      [`x${'*'.repeat(10)}`, { fin: false, opcode: TEXT }],
      ['', { fin: false, opcode: CONTINUATION }],
      [STARS, { fin: true, opcode: PING }],
      [`${STARS.slice(10)}y`.padEnd(200, 'z'), { fin: true, opcode: CONTINUATION }],
      ['', { fin: true, opcode: TEXT }],
      [STARS, { fin: true, opcode: CLOSE }],
    ])
    for (let at = 0; at <= frames.length; at += 1) {
      const result = scrub([frames.subarray(0, at), frames.subarray(at)])
      if (!result.equals(expected))
        t.same(result.toString('latin1'), expected.toString('latin1'), `split at ${at}`)
    }
    t.ok(scrub([...frames].map((byte) => Buffer.from([byte]))).equals(expected), 'byte by byte')
  },
)

t.test('frames that a server may not send end the connection', async (t) => {
  for (const bytes of [
    [0x81, 0x81, 0, 0, 0, 0, 1],
    [0x89, 126, 1, 0],
  ]) {
    const stream = new WebSocketScrubStream(matchers)
    const failed = once(stream, 'error')
    stream.write(Buffer.from(bytes))
    t.ok((await failed)[0] instanceof BrokerError)
  }
})
