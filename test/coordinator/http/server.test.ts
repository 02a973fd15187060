// Compression, health routes, draining, malformed requests and WebSocket upgrades.
import { once } from 'node:events'
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { z } from 'zod'
import { byKey } from '../../../coordinator/http/access.ts'
import { route } from '../../../coordinator/http/route.ts'
import { startTestServer } from './test-server.ts'

const createSizedRoute = (size: number, type?: string) =>
  route({
    access: byKey('boxes', 'write'),
    method: 'GET',
    path: `/sized/${size}${type ? '/typed' : ''}`,
    summary: 'Get a body of a fixed size',
    responses: { 200: type ? null : z.string() },
    async handler({ reply }) {
      const text = `"${'a'.repeat(size - 2)}"`
      return reply.type(type ?? 'application/json; charset=utf-8').send(text)
    },
  })
const control = [
  createSizedRoute(1024),
  createSizedRoute(1025),
  createSizedRoute(2_000_000),
  createSizedRoute(5000, 'application/octet-stream'),
]

/** Sends raw bytes on a new connection and returns everything that is received. */
function sendRaw(url: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes))
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text
    })
    socket.on('close', () => resolve(received)).on('error', reject)
  })
}

t.test('compresses responses over 1 KiB when the client accepts gzip', async (t) => {
  const { url } = await startTestServer(t, { control })
  const get = async (path: string, encoding: string) => {
    const response = await sendRaw(
      url,
      `GET /api/v1${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer dcp_owner\r\nconnection: close\r\naccept-encoding: ${encoding}\r\n\r\n`,
    )
    return {
      head: response.slice(0, response.indexOf('\r\n\r\n')),
      body: response.slice(response.indexOf('\r\n\r\n') + 4),
    }
  }
  t.notMatch((await get('/sized/1024', 'gzip')).head, 'content-encoding')
  const compressed = await get('/sized/1025', 'br, gzip, deflate')
  t.match(compressed.head, 'content-encoding: gzip')
  t.equal(gunzipSync(Buffer.from(compressed.body, 'latin1')).length, 1025)
  t.match((await get('/sized/2000000', 'gzip')).head, 'content-encoding: gzip')
  t.notMatch((await get('/sized/1025', 'identity')).head, 'content-encoding')
  t.notMatch((await get('/sized/1025', 'br')).head, 'content-encoding')
  t.notMatch((await get('/sized/5000/typed', 'gzip')).head, 'content-encoding')
})

t.test('content that is compressed once is not compressed for each request', async (t) => {
  const { url } = await startTestServer(t, { control })
  const isCompressed = async (encoding: string) => {
    const request = `GET /openapi.json HTTP/1.1\r\nhost: a\r\nconnection: close\r\naccept-encoding: ${encoding}\r\n\r\n`
    const response = await sendRaw(url, request)
    t.match(response, /^HTTP\/1\.1 200 /)
    return response.includes('content-encoding: gzip')
  }
  t.equal(await isCompressed('gzip'), true)
  for (const encoding of ['x-gzip', 'GZIP', 'identity, gzip;q=0.5', 'identity, *;q=0.2'])
    t.equal(await isCompressed(encoding), false, encoding)
})

t.test('serves health without a key, and rejects other requests while draining', async (t) => {
  const { send, http } = await startTestServer(t, { control })
  t.same((await send('GET', '/healthz', { key: null })).json, { ok: true })
  t.equal((await send('HEAD', '/readyz', { key: null })).status, 200)
  http.rejectNewRequests()
  t.equal((await send('GET', '/healthz', { key: null })).status, 200)
  const rejected = await send('GET', '/api/v1/sized/1024')
  t.equal(rejected.status, 503)
  t.equal(rejected.json.error, 'control_plane_unavailable')
  t.equal(rejected.headers.get('connection'), 'close')
  t.equal((await send('GET', '/v1/box/a/exec')).json.error.code, 'control_plane_unavailable')
})

t.test(
  'closes connections after their responses, then refuses connections, and serves those that are open',
  async (t) => {
    const { url, send, http } = await startTestServer(t, { control })
    const open = connect(Number(new URL(url).port), '127.0.0.1')
    await once(open, 'connect')
    open.setEncoding('latin1').write('GET /healthz HTTP/1.1\r\nhost: a\r\n')
    // The server has read the incomplete request.
    t.equal((await send('GET', '/healthz')).headers.get('connection'), 'keep-alive')
    http.beginLeaving()
    t.equal((await send('GET', '/healthz')).headers.get('connection'), 'close')
    t.equal((await send('GET', '/api/v1/sized/1024')).status, 200, 'requests are served')
    http.stopListening()
    await t.rejects(send('GET', '/healthz', { key: null }), 'a further connection')
    open.write('\r\n')
    t.match((await open.toArray()).join(''), /^HTTP\/1\.1 200 [\s\S]*connection: close/i)
  },
)

t.test('responds to malformed HTTP requests and keeps serving', async (t) => {
  const { url, send } = await startTestServer(t, { control })
  t.match(await sendRaw(url, 'hello\r\n\r\n'), /^HTTP\/1\.1 400 [\s\S]*"error":"bad_request"/)
  const long = `GET / HTTP/1.1\r\nhost: a\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`
  t.match(await sendRaw(url, long), /^HTTP\/1\.1 431 /)
  t.equal((await send('GET', '/healthz')).status, 200, 'the server still responds')
})

t.test('rejects a request with two Host headers', async (t) => {
  const { url } = await startTestServer(t, { control, edge: control })
  for (const [path, code] of [
    ['/healthz', '"error":"bad_request"'],
    ['/api/v1/sized/1024', '"error":"bad_request"'],
    ['/v1/box/apple/sized/1024', '"code":"invalid_request"'],
  ] as const) {
    const head = `GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer dcp_owner\r\nconnection: close\r\n`
    t.match(await sendRaw(url, `${head}Host: b\r\n\r\n`), new RegExp(`^HTTP/1.1 400 [\\s\\S]*${code}`), path)
    t.match(await sendRaw(url, `${head}\r\n`), /^HTTP\/1\.1 200 /)
  }
})

t.test('upgrades only the paths of agent connections', async (t) => {
  const { url, send } = await startTestServer(t, { control })
  const upgrade = (path: string) =>
    sendRaw(
      url,
      `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nauthorization: Bearer dcp_owner\r\n\r\n`,
    )
  t.match(await upgrade('/agent/tunnel'), /^HTTP\/1\.1 418 /)
  t.match(await upgrade('/api/v1/sized/1024'), /^HTTP\/1\.1 200 /)
  t.equal((await send('GET', '/agent/transfers/abc', { key: null })).status, 418)
  t.equal((await send('GET', '/agent/other', { key: null })).status, 404)
})

t.test('an upgrade request before the response to an earlier request closes the connection', async (t) => {
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  const responses = { 200: z.string() }
  const slow = route({
    ...{ access: byKey('boxes', 'write'), method: 'GET', path: '/slow', summary: 'Wait', responses },
    handler: () => isReleased.then(() => 'ok'),
  })
  const socketRoute = route({
    ...{
      access: byKey('boxes', 'write'),
      method: 'GET',
      path: '/socket',
      summary: 'Open',
      isWebSocket: true,
    },
    responses: { 101: null },
    handler: async ({ reply }) => reply.send(),
  })
  const { url } = await startTestServer(t, { control: [slow], edge: [socketRoute] })
  t.teardown(release)
  const get = (path: string, headers = '') =>
    `GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer dcp_owner\r\n${headers}\r\n`
  const upgrade = get('/v1/box/fig/socket', 'connection: upgrade\r\nupgrade: websocket\r\n')
  t.equal(await sendRaw(url, get('/api/v1/slow') + upgrade), '')
})

t.test('closes while the WebSocket of an agent is open', async (t) => {
  const { url, http } = await startTestServer(t, {
    handleUpgrade: (_request, socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  })
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write('GET /agent/tunnel HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
  await once(socket, 'data')
  const closed = once(socket, 'close')
  await http.close()
  await closed
})
