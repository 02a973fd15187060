// The limits of connections: their number, and how long one may stay open without a request.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { waitUntil } from '../../support/wait-until.ts'
import { startTestServer } from './test-server.ts'

const LIMITS = { maxConnections: 100, headersTimeoutSeconds: 3600, idleTimeoutSeconds: 3600 }
const REQUEST = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n'

async function openConnection(t: Parameters<typeof startTestServer>[0], url: string) {
  const socket: Socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  const received = { text: '', isClosed: false }
  socket.on('data', (chunk) => {
    received.text += chunk.toString('latin1')
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    received.isClosed = true
  })
  await once(socket, 'connect')
  return { socket, received }
}

t.test('closes connections above the limit, and logs one line', async (t) => {
  const limits = { ...LIMITS, maxConnections: 2 }
  const { url, countConnections, logLines } = await startTestServer(t, { limits })
  const open = [await openConnection(t, url), await openConnection(t, url)]
  await waitUntil('both connections are accepted', async () => (await countConnections()) === 2)
  for (let i = 0; i < 3; i++) {
    const { received } = await openConnection(t, url)
    await waitUntil('a further connection is closed', () => received.isClosed)
    t.equal(received.text, '')
  }
  t.equal(logLines.filter((line) => line.includes('too many connections')).length, 1)
  open[0]?.socket.destroy()
  await waitUntil('the connection is closed', async () => (await countConnections()) === 1)
  const { socket, received } = await openConnection(t, url)
  socket.write(REQUEST)
  await waitUntil('a new connection is served', () => received.text.startsWith('HTTP/1.1 200'))
})

t.test('closes a connection whose headers do not arrive', async (t) => {
  const { url } = await startTestServer(t, { limits: { ...LIMITS, headersTimeoutSeconds: 1 } })
  for (const bytes of ['', 'GET / HTTP/1.1\r\nhost: ']) {
    const { socket, received } = await openConnection(t, url)
    socket.write(bytes)
    await waitUntil('the connection is closed', () => received.isClosed)
    t.match(received.text, /^HTTP\/1\.1 408 [\s\S]*"error":"request_timeout"/)
  }
})

t.test('closes a connection without a request', async (t) => {
  const { url } = await startTestServer(t, { limits: { ...LIMITS, idleTimeoutSeconds: 1 } })
  const { socket, received } = await openConnection(t, url)
  socket.write(REQUEST)
  await waitUntil('the connection is closed', () => received.isClosed)
  t.match(received.text, /^HTTP\/1\.1 200 /)
})
