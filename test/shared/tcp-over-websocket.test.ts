// One TCP connection over a WebSocket: half-close, resets, back-pressure, and use as the socket of an HTTP client.
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import { connect, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { joinConnections } from '../../shared/join-connections.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import { waitUntil } from '../support/wait-until.ts'
import { openWebSocketPair } from '../support/websocket-pair.ts'

const MiB = 1024 * 1024

/** The WebSockets close at the end of a test, which is an error of an open stream. */
const wrap = (...args: ConstructorParameters<typeof TcpOverWebSocket>): TcpOverWebSocket =>
  new TcpOverWebSocket(...args).on('error', () => undefined)

async function openPair(t: Test): Promise<[TcpOverWebSocket, TcpOverWebSocket]> {
  const [a, b] = await openWebSocketPair(t)
  return [wrap(a), wrap(b, { respondsToPings: true })]
}

const errorOf = (stream: Duplex): Promise<Error & { code?: string }> =>
  new Promise((resolve) => stream.once('error', resolve))
/** Unlike buffer(), this does not destroy the stream, which may still write. */
async function readAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(stream, 'end')
  return Buffer.concat(chunks)
}
const closed = (stream: Duplex | WebSocket) => new Promise((resolve) => stream.once('close', resolve))

t.test('each direction ends by itself, and both WebSockets close with code 1000', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const [a, b] = [wrap(wsA), wrap(wsB, { respondsToPings: true })]
  const codes = Promise.all([wsA, wsB].map(async (ws) => (await once(ws, 'close'))[0]))
  a.end('request')
  t.equal(await text(b), 'request')
  t.equal(b.writable, true, 'the other direction is open')
  b.write('')
  b.write('res')
  b.end('ponse')
  t.equal(await text(a), 'response')
  t.same(await codes, [1000, 1000])
})

t.test('a peer that reads slowly gets all bytes before the WebSocket is closed', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const a = wrap(wsA)
  wsB.send(Buffer.alloc(0))
  a.end(Buffer.alloc(MiB / 8, 'x'))
  const isClosed = closed(a)
  a.resume()
  await isClosed
  t.equal(wsA.readyState, wsA.OPEN, 'the peer has not read anything')
  let received = 0
  wsB.on('message', (data: Buffer) => {
    received += data.length
  })
  wsB.on('ping', (data) => wsB.pong(data))
  wsB.resume()
  const [code] = await once(wsB, 'close')
  t.equal(code, 1000)
  t.equal(received, MiB / 8)
})

t.test('carries many bytes in both directions at once', async (t) => {
  const [a, b] = await openPair(t)
  const sent = Buffer.alloc(20 * MiB, Buffer.from(Array.from({ length: 251 }, (_, index) => index)))
  a.end(sent)
  b.end(sent)
  const [atA, atB] = await Promise.all([readAll(a), readAll(b)])
  t.ok(atA.equals(sent))
  t.ok(atB.equals(sent))
})

t.test('a destroyed end resets the other', async (t) => {
  const [a, b] = await openPair(t)
  a.write('some bytes')
  b.resume()
  const error = errorOf(b)
  await once(b, 'data')
  a.destroy()
  t.equal((await error).code, 'ECONNRESET')
})

t.test('a reset after the FIN of one direction is an error of the other', async (t) => {
  const [a, b] = await openPair(t)
  a.end()
  b.resume()
  await once(b, 'end')
  const error = errorOf(b)
  a.destroy()
  t.equal((await error).code, 'ECONNRESET')
})

t.test('a reader gets all bytes before a reset, however late it reads', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const [a, b] = [wrap(wsA), wrap(wsB, { respondsToPings: true })]
  const sent = Buffer.alloc(MiB / 8, 'x')
  a.write(sent)
  a.resetSoon()
  const isReset = closed(wsB)
  // Starts to receive, without a reader of the bytes.
  b.read(0)
  await isReset
  // The writer does not lose them either.
  b.write('some bytes')
  const error = errorOf(b)
  let hasEnded = false
  b.once('end', () => {
    hasEnded = true
  })
  const received: Buffer[] = []
  b.on('data', (data: Buffer) => received.push(data))
  t.equal((await error).code, 'ECONNRESET')
  t.ok(Buffer.concat(received).equals(sent))
  t.equal(hasEnded, false, 'a reset is not an end')
})

t.test('abort() closes the WebSocket with a code, which resets the other end', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const [a, b] = [wrap(wsA), wrap(wsB)]
  b.resume()
  const closedB = once(wsB, 'close')
  const error = errorOf(b)
  a.abort(3000, 'unauthorized')
  a.abort(1012, '')
  const [code, reason] = await closedB
  t.same([code, String(reason)], [3000, 'unauthorized'])
  t.equal((await error).code, 'ECONNRESET')
})

t.test('a WebSocket that is already closed is a reset connection', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const isClosed = closed(wsA)
  wsA.resume()
  wsB.terminate()
  await isClosed
  const a = wrap(wsA)
  t.equal((await errorOf(a)).code, 'ECONNRESET')
})

t.test('a writer waits for a reader that does not read', async (t) => {
  const [a, b] = await openPair(t)
  let written = 0
  const chunk = Buffer.alloc(64 * 1024)
  const write = () => {
    while (written < 100 * MiB) {
      written += chunk.length
      if (!a.write(chunk)) return void a.once('drain', write)
    }
    a.end()
  }
  write()
  let last = -1
  await waitUntil('the writer has to wait', () => {
    const isSame = written === last
    last = written
    return isSame && a.writableNeedDrain
  })
  t.ok(written < 30 * MiB, `${written} bytes are buffered`)
  t.ok(b.readableLength <= b.readableHighWaterMark + 64 * 1024)
  t.equal((await buffer(b)).length, 100 * MiB)
})

t.test('text messages, bytes after the FIN and many pings are errors', async (t) => {
  const attacks: Record<string, (ws: WebSocket) => void> = {
    text: (ws) => ws.send('text'),
    'bytes after the FIN': (ws) => {
      ws.send(Buffer.alloc(0))
      ws.send(Buffer.from('x'))
    },
    pings: (ws) => {
      for (let count = 0; count < 200; count++) ws.ping()
    },
  }
  for (const [name, attack] of Object.entries(attacks)) {
    const [wsA, wsB] = await openWebSocketPair(t)
    const a = wrap(wsA)
    a.resume()
    wsB.resume()
    const error = errorOf(a)
    const isClosed = closed(wsB)
    attack(wsB)
    t.ok(await error, name)
    await isClosed
  }
})

t.test('a peer that sends nothing is dead, and one that sends pings is alive', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const a = wrap(wsA, { pingMs: 5 })
  a.resume()
  t.equal((await errorOf(a)).code, 'ECONNRESET', 'the peer does not read, so it does not respond')
  wsB.terminate()

  const [wsC, wsD] = await openWebSocketPair(t)
  const c = wrap(wsC, { pingMs: 50 })
  const d = wrap(wsD, { pingMs: 5 })
  c.resume()
  let pings = 0
  wsC.on('ping', () => pings++)
  d.resume()
  await waitUntil('more intervals than a silent peer has', () => pings > 100)
  t.equal(c.destroyed, false)
})

t.test('a rate limit delays the reader, and loses nothing', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const a = wrap(wsA)
  let counted = 0
  const b = wrap(wsB, { countMessage: () => (++counted % 10 === 0 ? 1 : 0) })
  const sendAll = async () => {
    for (let index = 0; index < 50; index++)
      await new Promise<void>((resolve) => a.write(`${index} `, () => resolve()))
    a.end()
  }
  const [received] = await Promise.all([text(b), sendAll()])
  t.equal(received, Array.from({ length: 50 }, (_, index) => `${index} `).join(''))
})

/** A TCP server behind a pair: returns the near end of a new connection to it. */
async function serveBehindPair(t: Test, server: Server) {
  server.listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return async () => {
    const [near, far] = await openPair(t)
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    joinConnections(socket, far)
    return { near, socket }
  }
}

t.test('a joined TCP socket is reset with the other end, and ends with it', async (t) => {
  const { createServer: createTcpServer } = await import('node:net')
  const accepted: Socket[] = []
  const server = createTcpServer({ allowHalfOpen: true }, (socket) =>
    accepted.push(socket.on('error', () => undefined)),
  )
  const open = await serveBehindPair(t, server)

  const first = await open()
  await waitUntil('the server accepts', () => accepted.length === 1)
  const [peer] = accepted as [Socket]
  const end = once(peer.resume(), 'end')
  first.near.end()
  await end
  t.equal(peer.destroyed, false)
  peer.end('last')
  t.equal(await text(first.near), 'last')

  const second = await open()
  await waitUntil('the server accepts', () => accepted.length === 2)
  const reset = errorOf(accepted[1] as Socket)
  accepted[1]?.resume()
  second.near.destroy()
  t.equal((await reset).code, 'ECONNRESET')

  const third = await open()
  await waitUntil('the server accepts', () => accepted.length === 3)
  const error = errorOf(third.near.resume())
  accepted[2]?.resetAndDestroy()
  t.equal((await error).code, 'ECONNRESET')
})

t.test('bytes for a reset TCP connection are discarded until the other end has read the rest', async (t) => {
  const { createServer: createTcpServer } = await import('node:net')
  const server = createTcpServer((socket) =>
    socket.once('data', () => socket.write('response', () => socket.resetAndDestroy())),
  )
  const open = await serveBehindPair(t, server)
  const { near, socket } = await open()
  near.write('request')
  await closed(socket)
  // More than the kernel buffers.
  await new Promise((resolve) => near.write(Buffer.alloc(20 * MiB), resolve))
  const error = errorOf(near)
  t.equal(String((await once(near, 'data'))[0]), 'response')
  t.equal((await error).code, 'ECONNRESET')
})

t.test('is the socket of an HTTP client with keep-alive', async (t) => {
  const server = createServer((request, response) => {
    if (request.url === '/close') response.setHeader('connection', 'close')
    request.pipe(response)
  })
  const open = await serveBehindPair(t, server)
  const connections: TcpOverWebSocket[] = []
  const agent = new Agent({ keepAlive: true, timeout: 30_000 })
  agent.createConnection = (_options, onCreated) => {
    void open().then(({ near }) => {
      near.allowHalfOpen = false
      connections.push(near)
      onCreated?.(null, near)
    })
    return undefined
  }
  t.teardown(() => agent.destroy())
  const post = async (path: string, body: Buffer) => {
    const sent = request({ agent, path, method: 'POST' }).end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return buffer(response)
  }
  const body = Buffer.alloc(3 * MiB, 'x')
  t.ok((await post('/', body)).equals(body))
  await waitUntil('the connection is free', () => Object.keys(agent.freeSockets).length === 1)
  t.ok((await post('/', body)).equals(body))
  t.equal(connections.length, 1, 'the second request reuses the connection')
  await waitUntil('the connection is free', () => Object.keys(agent.freeSockets).length === 1)
  server.closeIdleConnections()
  await waitUntil(
    'a free connection that the server closes is discarded',
    () => connections[0]?.destroyed === true,
  )
  t.equal(Object.keys(agent.freeSockets).length, 0)
  t.ok((await post('/close', body)).equals(body))
  await waitUntil('the connection is closed', () => connections[1]?.destroyed === true)
  t.equal(connections.length, 2)
})

t.test('emits timeout when no bytes flow', async (t) => {
  const [a] = await openPair(t)
  const timeout = once(a, 'timeout')
  a.setTimeout(5)
  await timeout
  t.equal(a.timeout, 5)
  a.setTimeout(0)
  t.equal(a.destroyed, false)
})

t.test('a connection whose FIN cannot be sent is closed', async (t) => {
  const [wsA, wsB] = await openWebSocketPair(t)
  const a = wrap(wsA)
  wsB.send(Buffer.alloc(0))
  a.resume()
  await once(a, 'end')
  const isClosed = closed(a)
  wsA.terminate()
  a.end()
  await isClosed
  t.equal(a.destroyed, true)
})
