// The limits of connections: how many there may be, which of them are closed, and how long one may stay open without a request.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { z } from 'zod'
import type { Actor } from '../../../coordinator/http/actor.ts'
import type { CredentialLookup } from '../../../coordinator/http/auth.ts'
import { Connections } from '../../../coordinator/http/connections.ts'
import { routeWithoutCredential } from '../../../coordinator/http/route.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { actor, figRoute, startTestServer } from './test-server.ts'

const LIMITS = {
  maxConnections: 100,
  addressConnections: 100,
  headersTimeoutSeconds: 3600,
  idleTimeoutSeconds: 3600,
}
const REQUEST = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n'
const HALF_SENT = 'GET /healthz HTTP/1.1\r\nhost: '
const WITH_KEY = 'GET /api/v1/fig HTTP/1.1\r\nhost: a\r\nauthorization: Bearer dcp_owner\r\n\r\n'

const withKey = (name: string) => WITH_KEY.replace('dcp_owner', `dcp_${name}`)

const createKeys = (keys: { key: string; user: string; workspace: string | undefined }[]) =>
  Object.fromEntries(
    keys.map(({ key, user, workspace = '' }): [string, CredentialLookup] => [
      `dcp_${key}`,
      {
        actor: {
          ...actor,
          credential: { ...actor.credential, id: key } as Actor['credential'],
          userId: user,
          workspaceId: workspace,
        },
      },
    ]),
  )

async function openConnection(
  t: Parameters<typeof startTestServer>[0],
  url: string,
  { text = '', address = '127.0.0.1' } = {},
) {
  const socket: Socket = connect({
    port: Number(new URL(url).port),
    host: '127.0.0.1',
    localAddress: address,
  })
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
  socket.write(text)
  const request = async (sent: string) => {
    received.text = ''
    socket.write(sent)
    await waitUntil('a response', () => received.text.includes('\r\n\r\n') || received.isClosed)
    return received.text.slice(0, 'HTTP/1.1 200'.length)
  }
  return { socket, received, request }
}

type OpenConnection = Awaited<ReturnType<typeof openConnection>>

t.test('at the limit of an address, the oldest incomplete request is closed', async (t) => {
  const limits = { ...LIMITS, addressConnections: 2 }
  const { url, countConnections, logLines } = await startTestServer(t, { limits })
  const other = await openConnection(t, url, { text: HALF_SENT, address: '127.0.0.2' })
  const halfSent: OpenConnection[] = []
  for (let i = 0; i < 5; i += 1) {
    halfSent.push(await openConnection(t, url, { text: HALF_SENT }))
    await waitUntil(
      'the connection is accepted',
      async () => (await countConnections()) === 1 + Math.min(i + 1, 2),
    )
  }
  const { request } = await openConnection(t, url)
  t.equal(await request(REQUEST), 'HTTP/1.1 200', 'a new client is served')
  await waitUntil('the older ones are closed', () =>
    halfSent.slice(0, 4).every(({ received }) => received.isClosed),
  )
  t.notOk(halfSent[4]?.received.isClosed)
  t.notOk(other.received.isClosed, 'other addresses are not affected')
  const lines = logLines.filter((line) => line.includes('too many connections'))
  t.equal(lines.length, 1, 'one line is logged')
  t.match(JSON.parse(lines[0] ?? ''), { limit: 'address', address: '127.0.0.1' })
})

t.test('a connection with a credential is not closed and does not count', async (t) => {
  const limits = { ...LIMITS, addressConnections: 1 }
  const { url } = await startTestServer(t, { control: [figRoute], limits })
  const owners = []
  for (let i = 0; i < 3; i += 1) {
    const owner = await openConnection(t, url)
    t.equal(await owner.request(WITH_KEY), 'HTTP/1.1 200')
    owners.push(owner)
  }
  for (let i = 0; i < 3; i += 1) await openConnection(t, url, { text: HALF_SENT })
  for (const { request } of owners) t.equal(await request(WITH_KEY), 'HTTP/1.1 200')
})

t.test('a connection whose credential was revoked gives way again', async (t) => {
  const limits = { ...LIMITS, addressConnections: 1 }
  const keys: Record<string, CredentialLookup> = { dcp_guest: { actor } }
  const { url, revoke } = await startTestServer(t, { control: [figRoute], limits, keys })
  const withKey = WITH_KEY.replace('dcp_owner', 'dcp_guest')
  const guests = []
  for (let i = 0; i < 3; i += 1) {
    const guest = await openConnection(t, url)
    t.equal(await guest.request(withKey), 'HTTP/1.1 200')
    guests.push(guest)
  }
  revoke('dcp_guest')
  for (const { request } of guests) t.equal(await request(withKey), 'HTTP/1.1 401')
  for (const { received } of guests) {
    const { request } = await openConnection(t, url)
    t.equal(await request(WITH_KEY), 'HTTP/1.1 200')
    await waitUntil('the connection is closed', () => received.isClosed)
  }
})

t.test('connections that were reset before they are accepted do not close those of agents', (t) => {
  const connections = new Connections({ ...LIMITS, addressConnections: 2 })
  const connectSocket = (addresses: { localAddress?: string }) => {
    const socket = Object.assign(new PassThrough(), addresses) as unknown as Socket
    connections.add(socket)
    return socket
  }
  // Neither address of a Unix socket is known; of a reset TCP connection, only the one of this machine is.
  const agents = [1, 2].map(() => connectSocket({}))
  const resets = [1, 2, 3].map(() => connectSocket({ localAddress: '127.0.0.1' }))
  t.ok(resets.every(({ destroyed }) => destroyed))
  t.notOk(agents.some(({ destroyed }) => destroyed))
  t.equal(connections.size, 2)
  connections.destroyAll()
  t.end()
})

t.test('half of the connections are for those with a credential', async (t) => {
  const limits = { ...LIMITS, maxConnections: 4 }
  const names = ['a', 'b', 'c', 'd']
  const keys = createKeys(names.map((name) => ({ key: name, user: name, workspace: name })))
  const { url, countConnections, logLines } = await startTestServer(t, { control: [figRoute], limits, keys })
  const halfSent: OpenConnection[] = []
  for (const i of [2, 3, 4, 5])
    halfSent.push(await openConnection(t, url, { text: HALF_SENT, address: `127.0.0.${i}` }))
  await waitUntil('the oldest ones are closed', () =>
    halfSent.slice(0, 2).every(({ received }) => received.isClosed),
  )
  await waitUntil('two are open', async () => (await countConnections()) === 2)
  const owners = []
  for (const name of names) {
    const { socket, request } = await openConnection(t, url)
    const requestFig = () => request(withKey(name))
    t.equal(await requestFig(), 'HTTP/1.1 200')
    owners.push({ socket, requestFig })
  }
  t.ok(halfSent.every(({ received }) => received.isClosed))
  const refused = await openConnection(t, url)
  await waitUntil('a further connection is closed', () => refused.received.isClosed)
  for (const { requestFig } of owners) t.equal(await requestFig(), 'HTTP/1.1 200')
  t.equal(logLines.filter((line) => line.includes('too many connections')).length, 5, 'one line per address')
  owners[0]?.socket.destroy()
  await waitUntil('the connection is closed', async () => (await countConnections()) === 3)
  t.equal(await (await openConnection(t, url)).request(REQUEST), 'HTTP/1.1 200')
})

t.test('a credential, a user and a workspace have their share of the connections', async (t) => {
  const keys = createKeys([
    { key: 'a1', user: 'a', workspace: 'w' },
    { key: 'a2', user: 'a', workspace: 'w' },
    { key: 'b1', user: 'b', workspace: 'w' },
    { key: 'b2', user: 'b', workspace: 'w' },
    { key: 'c1', user: 'c', workspace: 'w' },
    { key: 'd1', user: 'd', workspace: 'x' },
  ])
  const limits = { ...LIMITS, maxConnections: 16 }
  const { url, connections } = await startTestServer(t, { control: [figRoute], limits, keys })
  const send = async (key: string) => {
    const connection = await openConnection(t, url)
    return { ...connection, status: await connection.request(withKey(key)) }
  }
  for (const key of ['a1', 'a1', 'a2', 'a2', 'b1', 'b1', 'b2', 'b2'])
    t.equal((await send(key)).status, 'HTTP/1.1 200')
  const refused = await send('a1')
  t.equal(refused.status, 'HTTP/1.1 429')
  t.match(refused.received.text, /retry-after: 5/)
  await waitUntil('it is closed', () => refused.received.isClosed)
  t.match(
    refused.received.text,
    /"rate_limited".*This API key or session has reached the limit of 2 open connections\. Close one, or/,
  )
  t.equal((await send('c1')).status, 'HTTP/1.1 200', 'a member with none takes the place of one with many')
  t.equal((await send('d1')).status, 'HTTP/1.1 200', 'another workspace has its own share')
  await waitUntil('the limit of the workspace holds', () => connections.size === 9)
})

t.test('when all connections have a credential, one of the workspace with the most is closed', async (t) => {
  const limits = { ...LIMITS, maxConnections: 4 }
  const keys = createKeys(
    ['a1', 'a2', 'b1', 'b2', 'c1'].map((key) => ({ key, user: key, workspace: key[0] })),
  )
  const { url, connections, logLines } = await startTestServer(t, { control: [figRoute], limits, keys })
  const open = async (key: string) => {
    const connection = await openConnection(t, url)
    t.equal(await connection.request(withKey(key)), 'HTTP/1.1 200')
    return connection
  }
  const [first, ...others] = [await open('a1'), await open('a2'), await open('b1'), await open('b2')]
  await open('c1')
  await waitUntil('the oldest one is closed', () => first?.received.isClosed)
  t.notOk(others.some(({ received }) => received.isClosed))
  t.equal(connections.size, 4)
  t.match(
    logLines.filter((line) => line.includes('too many connections')).map((line) => JSON.parse(line)),
    [
      {
        limit: 'share',
        workspace: 'a',
        msg: 'too many connections, closed one of the workspace that has the most',
      },
    ],
  )
})

t.test('a connection of a trusted proxy belongs to a client during its request only', async (t) => {
  const limits = { ...LIMITS, maxConnections: 8, trustedProxies: ['127.0.0.1'] }
  const keys = createKeys(['a', 'b'].map((key) => ({ key, user: key, workspace: key })))
  const { url } = await startTestServer(t, { control: [figRoute], limits, keys })
  const connections = []
  for (let i = 0; i < 4; i += 1) connections.push(await openConnection(t, url))
  for (const key of ['a', 'b', 'a'])
    for (const { request } of connections) t.equal(await request(withKey(key)), 'HTTP/1.1 200')
})

t.test('the other connections of a box are no tunnels, and have a share', (t) => {
  const connections = new Connections({ ...LIMITS, maxConnections: 16 })
  const connectBox = (boxId: string, workspaceId: string, use: 'tunnel' | 'box') => {
    const socket = new PassThrough() as unknown as Socket
    connections.add(socket)
    connections.setAuthenticated(socket, { credentialId: boxId, userId: null, workspaceId }, use)
  }
  for (let i = 0; i < 4; i += 1) connectBox('box_1', 'w', 'box')
  t.throws(() => connectBox('box_1', 'w', 'box'), {
    code: 'rate_limited',
    message: /^This box has reached the limit of 4 open connections\./,
  })
  for (let i = 0; i < 4; i += 1) connectBox('box_2', 'w', 'box')
  t.throws(() => connectBox('box_1', 'w', 'box'), { code: 'rate_limited' })
  for (const box of ['box_1', 'box_2', 'box_3']) connectBox(box, 'w', 'tunnel')
  connections.destroyAll()
  t.end()
})

t.test('the limit of an address does not hold for trusted proxies', async (t) => {
  const limits = { ...LIMITS, addressConnections: 1, trustedProxies: ['127.0.0.0/31'] }
  const { url } = await startTestServer(t, { limits })
  const connections = []
  for (let i = 0; i < 3; i += 1) connections.push(await openConnection(t, url))
  for (const { request } of connections) t.equal(await request(REQUEST), 'HTTP/1.1 200')
})

t.test('a request that is served is closed after the incomplete ones', async (t) => {
  const served = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const slow = routeWithoutCredential({
    method: 'POST',
    path: '/slow',
    summary: 'Wait',
    responses: { 200: z.object({}) },
    async handler() {
      served.resolve()
      await released.promise
      return {}
    },
  })
  const limits = { ...LIMITS, addressConnections: 2 }
  const { url, countConnections } = await startTestServer(t, { control: [slow], limits })
  const post = (length: number) =>
    `POST /api/v1/slow HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
  const first = await openConnection(t, url, { text: post(0) })
  await served.promise
  const halfBody = await openConnection(t, url, { text: post(2) })
  await waitUntil('both are accepted', async () => (await countConnections()) === 2)
  const halfSent = await openConnection(t, url, { text: HALF_SENT })
  await waitUntil('the request without its body is closed', () => halfBody.received.isClosed)
  await openConnection(t, url)
  await waitUntil('the next incomplete one is closed', () => halfSent.received.isClosed)
  released.resolve()
  await waitUntil('the first request is complete', () => first.received.text.startsWith('HTTP/1.1 200'))
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
