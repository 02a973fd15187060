// WebSockets and other upgrades through a shared port.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Duplex } from 'node:stream'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { waitUntil } from '../../../support/wait-until.ts'
import { HOST, openRaw, type Share, type ShareOptions, startShare } from './share-fixture.ts'

/** An app with a WebSocket that sends every message back. */
function createEchoApp(t: Test) {
  const app = createServer((_request, response) => response.end('plain'))
  const webSockets = new WebSocketServer({ server: app })
  webSockets.on('connection', (ws, { headers }) => {
    ws.send(JSON.stringify({ host: headers.host, origin: headers.origin, cookie: headers.cookie }))
    ws.on('message', (data, isBinary) => ws.send(data, { binary: isBinary }))
  })
  t.teardown(() => webSockets.close())
  return app
}

async function openWebSocket(t: Test, { host, port }: Share, headers: Record<string, string> = {}) {
  const ws = new WebSocket(`ws://${host}:${port}/socket`, {
    headers: { host: HOST, ...headers },
  })
  t.teardown(() => ws.terminate())
  ws.on('error', () => undefined)
  const [message] = (await once(ws, 'message')) as [Buffer]
  return { ws, hello: JSON.parse(message.toString()) }
}

const isClosed = (ws: WebSocket) => ws.readyState === WebSocket.CLOSED

const startEcho = (t: Test, options: ShareOptions = {}) =>
  startShare(t, { app: createEchoApp(t), ...options })

t.test('messages of a WebSocket pass in both directions, and its end', async (t) => {
  const share = await startEcho(t)
  const { ws, hello } = await openWebSocket(t, share, { origin: `http://${HOST}`, cookie: 'a=1' })
  t.same(hello, { host: HOST, origin: `http://${HOST}`, cookie: 'a=1' })
  const large = Buffer.alloc(5_000_000, 'x')
  ws.send(large)
  const [echo] = (await once(ws, 'message')) as [Buffer]
  t.ok(echo.equals(large))
  ws.close(4321, 'bye')
  t.same(await once(ws, 'close'), [4321, Buffer.from('bye')])
  await waitUntil('nothing is open', () => share.open.size === 0 && share.boxConnections.size.ports === 0)
})

t.test('the app gets localhost as Host and Origin when the link asks for it', async (t) => {
  const share = await startEcho(t, { share: { rewritesHost: true } })
  const { hello } = await openWebSocket(t, share, { origin: `http://${HOST}` })
  t.match(hello, { host: 'localhost:3000', origin: 'http://localhost:3000' })
})

t.test('a WebSocket is closed when its share ends or expires, or the coordinator stops', async (t) => {
  const ends: Record<string, (share: Share) => void> = {
    revoked: (share) => share.endShare(),
    stopped: (share) => share.beginStop(),
    expired: () => undefined,
    'box disconnected': (share) => {
      for (const socket of share.appSockets) socket.destroy()
    },
  }
  for (const [name, end] of Object.entries(ends)) {
    let now = 0
    const expiresAt = name === 'expired' ? 1_000 : null
    const share = await startEcho(t, { share: { expiresAt }, clock: { now: () => now } })
    const { ws } = await openWebSocket(t, share)
    now = 2_000
    end(share)
    await waitUntil(`it is closed: ${name}`, () => isClosed(ws))
    await waitUntil('the app sees it too', () => share.boxConnections.size.connections === 0)
    t.equal(share.open.size, 0, name)
  }
})

const HANDSHAKE = [
  'GET /raw HTTP/1.1',
  `Host: ${HOST}`,
  'X-First: 1',
  'Connection: Upgrade',
  'Upgrade: raw',
  '',
  '',
].join('\r\n')

/** An app that upgrades to a protocol of its own. */
function createRawApp(upgrade: (socket: Duplex, head: Buffer) => void) {
  return createServer((_request, response) => response.end('plain')).on(
    'upgrade',
    (_request, socket, head) => {
      socket.on('error', () => undefined)
      upgrade(socket, head)
    },
  )
}

t.test('bytes right after the headers of both sides, and half-closed connections', async (t) => {
  const app = createRawApp((socket, head) => {
    socket.write('HTTP/1.1 101 Changed\r\nX-b: 1\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nhello')
    let received = head.toString()
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString()
    })
    socket.on('end', () => socket.end(` got ${received}`))
  })
  const share = await startShare(t, { app })
  const raw = await openRaw(t, share, `${HANDSHAKE}early`)
  await waitUntil('the head of the app has arrived', () => raw.received.includes('hello'))
  raw.socket.end(' late')
  await waitUntil('the connection is closed', () => raw.isClosed)
  t.equal(
    raw.received,
    'HTTP/1.1 101 Changed\r\nX-b: 1\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nhello got early late',
  )
})

t.test('an app that ends its direction still receives', async (t) => {
  let received = ''
  const app = createRawApp((socket) => {
    socket.end('HTTP/1.1 101 Changed\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\ndone')
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString()
    })
  })
  const share = await startShare(t, { app })
  const raw = await openRaw(t, share, HANDSHAKE, { allowHalfOpen: true })
  await waitUntil('the app has ended', () => raw.isEnded)
  raw.socket.end('still here')
  await waitUntil('the app has it', () => received === 'still here')
})

t.test('an app may refuse an upgrade with a large response', async (t) => {
  const body = 'x'.repeat(2_000_000)
  const app = createRawApp((socket) =>
    socket.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
  )
  const share = await startShare(t, { app })
  const raw = await openRaw(t, share, HANDSHAKE)
  await waitUntil('the connection is closed', () => raw.isClosed)
  t.match(raw.received, /^HTTP\/1\.1 403 Forbidden\r\n/)
  t.equal(raw.received.slice(raw.received.indexOf('\r\n\r\n') + 4).length, body.length)
})

t.test('a viewer that disconnects before the response to an upgrade ends the request', async (t) => {
  const responses = ['', 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: a\n\n']
  for (const [index, response] of responses.entries()) {
    const received = Promise.withResolvers<void>()
    const app = createRawApp((socket) => {
      socket.write(response)
      received.resolve()
    })
    const share = await startShare(t, { app })
    const raw = await openRaw(t, share, `${HANDSHAKE}early`)
    await received.promise
    await waitUntil('the response has arrived', () => index === 0 || raw.received.includes('data: a'))
    raw.socket.end('late')
    await waitUntil('the request has ended', () => share.open.size === 0)
    await waitUntil('its connection is closed', () => share.boxConnections.size.connections === 0)
  }
})

t.test('offers of HTTP/2 and upgrades with a body are served without the upgrade', async (t) => {
  const share = await startShare(t, { app: createRawApp(() => t.fail('upgraded')) })
  for (const request of [
    HANDSHAKE.replace('Upgrade: raw', 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk'),
    `${HANDSHAKE.replace('X-First: 1', 'Content-Length: 4')}body`,
  ]) {
    const raw = await openRaw(t, share, request)
    await waitUntil('the response has arrived', () => raw.received.endsWith('plain'))
    raw.socket.destroy()
  }
})

t.test('an upgrade of a refused viewer gets a response', async (t) => {
  const share = await startEcho(t, {
    share: { access: 'members' },
    authorize: async () => ({ type: 'refuse', reason: 'sign-in' }),
  })
  const ws = new WebSocket(`ws://${share.host}:${share.port}/`, { headers: { host: HOST } })
  const [error] = (await once(ws, 'error')) as [Error]
  t.match(error.message, '401')
})
