// A response that is sent before the request body is complete closes its connection, and the client receives it.
import { Agent, request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { z } from 'zod'
import { byKey } from '../../../coordinator/http/access.ts'
import { route } from '../../../coordinator/http/route.ts'
import { ApiError } from '../../../shared/errors.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { startTestServer } from './test-server.ts'

const refusing = route({
  access: byKey('boxes', 'write'),
  method: 'PUT',
  path: '/refusing',
  summary: 'Reject the request before its body is read',
  rawBody: true,
  responses: { 200: z.object({}) },
  handler: async () => {
    throw new ApiError('name_taken')
  },
})
const destroying = route({
  ...refusing,
  path: '/destroying',
  handler: async ({ request }) => {
    request.raw.once('data', () => request.raw.pause())
    throw new ApiError('name_taken')
  },
})
const HOUR_MS = 3_600_000
const UNLIMITED = { bytes: Number.POSITIVE_INFINITY, idleMs: HOUR_MS, totalMs: HOUR_MS }

/** Opens a connection that stays open until the server has closed it completely. */
function openConnection(t: Parameters<typeof startTestServer>[0], url: string) {
  const socket: Socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  const received = { text: '', isEnded: false, isClosed: false }
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    received.text += text
  })
  socket.on('end', () => {
    received.isEnded = true
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    received.isClosed = true
  })
  return { socket, received }
}

const unauthorized = (length: number) =>
  `PUT /api/v1/refusing HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`

for (const [name, path, status] of [
  ['without a valid key', '/api/v1/refusing', 401],
  ['for an unknown route', '/api/v1/unknown', 404],
  ['that its handler rejects', '/api/v1/refusing', 409],
  ['whose handler stops reading', '/api/v1/destroying', 409],
] as const)
  t.test(`a large request ${name} receives the response, and its client can send the next one`, async (t) => {
    const { url } = await startTestServer(t, { control: [refusing, destroying] })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const send = (method: string, requestPath: string, body?: Buffer) =>
      new Promise<{ status: number | undefined; connection: string | undefined }>((resolve, reject) => {
        const key = status === 401 ? 'dcp_wrong' : 'dcp_owner'
        const request = httpRequest(url + requestPath, {
          method,
          agent,
          headers: { authorization: `Bearer ${key}` },
        })
        request.setTimeout(DEADLINE_MS, () => request.destroy(new Error('no response')))
        request.once('error', reject)
        request.once('response', (response) => {
          response.resume()
          response.once('end', () =>
            resolve({ status: response.statusCode, connection: response.headers.connection }),
          )
        })
        request.end(body)
      })
    for (let i = 0; i < 10; i++) {
      t.same(await send('PUT', path, Buffer.alloc(4_000_000)), { status, connection: 'close' })
      t.equal((await send('GET', '/healthz')).status, 200)
    }
  })

t.test('closes the connection of a client that sends nothing more', async (t) => {
  const { url, countConnections } = await startTestServer(t, {
    control: [refusing],
    linger: { ...UNLIMITED, idleMs: 50 },
  })
  const { socket, received } = openConnection(t, url)
  socket.write(unauthorized(1000))
  await waitUntil('the response is complete', () => received.isEnded)
  t.match(received.text, /^HTTP\/1\.1 401 [\s\S]*connection: close[\s\S]*"error":"unauthorized"/i)
  await waitUntil('the server has closed the connection', async () => (await countConnections()) === 0)
})

t.test('closes the connection of a client that sends without end', async (t) => {
  for (const [name, linger, pauseMs] of [
    ['after a number of bytes', { ...UNLIMITED, bytes: 1_000_000 }, 0],
    ['after a time', { ...UNLIMITED, totalMs: 200 }, 10],
  ] as const)
    await t.test(name, async (t) => {
      const { url } = await startTestServer(t, { control: [refusing], linger })
      const { socket, received } = openConnection(t, url)
      socket.write(unauthorized(10_000_000_000))
      await waitUntil('the server has closed the connection', async () => {
        socket.write(Buffer.alloc(pauseMs === 0 ? 100_000 : 10))
        return received.isClosed
      })
      t.match(received.text, /^HTTP\/1\.1 401 /)
    })
})

t.test('waits for the rest of the body, and does not handle a request that follows it', async (t) => {
  const { url, countConnections } = await startTestServer(t, { control: [refusing], linger: UNLIMITED })
  const { socket, received } = openConnection(t, url)
  socket.write(unauthorized(10))
  await waitUntil('the response is complete', () => received.isEnded)
  socket.write('12345')
  t.equal(await countConnections(), 1)
  socket.write('67890GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')
  await waitUntil('the server has closed the connection', async () => (await countConnections()) === 0)
  t.equal(received.text.split('HTTP/1.1').length - 1, 1, 'one response')
})

t.test('a client that sends invalid HTTP receives the response while it still sends', async (t) => {
  const { url } = await startTestServer(t, { linger: UNLIMITED })
  const { socket, received } = openConnection(t, url)
  socket.write(`hello\r\n\r\n${'x'.repeat(5_000_000)}`)
  await waitUntil('the response is complete', () => received.isEnded)
  t.match(received.text, /^HTTP\/1\.1 400 [\s\S]*"error":"bad_request"/)
  t.equal(received.text.split('HTTP/1.1').length - 1, 1, 'one response')
  socket.end()
  await waitUntil('the server has closed the connection', () => received.isClosed)
})

t.test('keeps the connection of a request whose body was read', async (t) => {
  const { url } = await startTestServer(t, { control: [refusing] })
  const { socket, received } = openConnection(t, url)
  for (let i = 1; i <= 3; i++) {
    socket.write(`${unauthorized(5)}12345`)
    await waitUntil('the response is complete', () => received.text.split('"unauthorized"').length - 1 === i)
  }
  t.notOk(received.isEnded)
})
