// Changes of secrets while connections of programs are open: a new value applies to the next request, and the loss of a host cuts
// what is open.
import { once } from 'node:events'
import { request as createRequest, type IncomingMessage } from 'node:http'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { sendRaw } from '../../../support/broker/raw.ts'
import { HOST, PLACEHOLDER, startBroker, VALUE } from '../../../support/broker/start-broker.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const OTHER = 'other.example.test'
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nX-Key: ${PLACEHOLDER}\r\n\r\n`

t.test('a new value is sent with the next request of an open connection', async (t) => {
  const keys: unknown[] = []
  const broker = await startBroker(t, {
    listener(request, response) {
      keys.push(request.headers['x-key'])
      response.end(`${request.headers['x-key']} end`)
    },
  })
  const socket = await broker.connect()
  t.match(await sendRaw(socket, GET, ' end'), `${'*'.repeat(VALUE.length)} end`)
  broker.mount.value = 'rotated-value'
  t.match(await sendRaw(socket, GET, ' end'), '************* end')
  t.same(keys, [VALUE, 'rotated-value'])
  t.equal(socket.destroyed, false)
})

t.test('an unmount cuts idle, streaming and upgraded connections, and no others', async (t) => {
  const broker = await startBroker(t, { listener: (_, response) => response.write('data: 1\n\n') })
  const webSockets = new WebSocketServer({ server: broker.upstream.http })
  t.teardown(() => webSockets.close())
  const { secrets, box, mount } = broker
  // Another secret covers the host too, and one has another host.
  secrets.mount(box.boxId, { secretId: 'sec_2', placeholder: 'p2', value: 'second-value', hosts: [HOST] })
  secrets.mount(box.boxId, { secretId: 'sec_3', placeholder: 'p3', value: 'third-value', hosts: [OTHER] })
  const idle = await broker.connect()
  const other = await broker.connect({}, OTHER)
  const handshake = await broker.openStream()
  handshake.resume()
  const streaming = await broker.connect()
  const outgoing = createRequest({ headers: { host: HOST }, createConnection: () => streaming }).end()
  outgoing.on('error', () => undefined)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  incoming.on('error', () => undefined).resume()
  const upgraded = await broker.connect()
  const ws = new WebSocket(`ws://${HOST}/`, { createConnection: () => upgraded })
  ws.on('error', () => undefined)
  await once(ws, 'open')
  secrets.unmount(box.boxId, mount)
  for (const [name, socket] of Object.entries({ idle, handshake, streaming, upgraded }))
    await waitUntil(`the ${name} connection is closed`, () => socket.destroyed)
  await waitUntil('the connections to the host are closed', () => broker.upstream.sockets.size === 0)
  t.equal(other.destroyed, false)
  await t.resolves(broker.connect(), 'the other secret still covers the host')
})

t.test('after a gap, upgraded connections and those to hosts without a mount are closed', async (t) => {
  const broker = await startBroker(t)
  const webSockets = new WebSocketServer({ server: broker.upstream.http })
  t.teardown(() => webSockets.close())
  const { secrets, box } = broker
  secrets.mount(box.boxId, { secretId: 'sec_3', placeholder: 'p3', value: 'third-value', hosts: [OTHER] })
  const idle = await broker.connect()
  const other = await broker.connect({}, OTHER)
  const upgraded = await broker.connect()
  const ws = new WebSocket(`ws://${HOST}/`, { createConnection: () => upgraded })
  ws.on('error', () => undefined)
  await once(ws, 'open')
  const mounts = secrets.mounts.get(box.boxId) ?? []
  secrets.mounts.set(
    box.boxId,
    mounts.filter(({ secretId }) => secretId !== 'sec_3'),
  )
  secrets.events.emit('missed')
  await waitUntil('the connection without a mount is closed', () => other.destroyed)
  await waitUntil('the upgraded connection is closed', () => upgraded.destroyed)
  t.equal(idle.destroyed, false)
})

t.test('the loss of the last secret refuses the next request and new connections', async (t) => {
  const broker = await startBroker(t)
  const socket = await broker.connect()
  broker.secrets.mounts.clear()
  t.match(await sendRaw(socket, GET), /^HTTP\/1\.1 403 [\s\S]*boxwood-broker-error: host_not_brokered/)
  await t.rejects(broker.openWebSocket(), { message: 'refused with 403' })
  t.equal(broker.upstream.serverNames.length, 0)
})

t.test('a cut while the mounts of a request are read prevents the request', async (t) => {
  const broker = await startBroker(t)
  const { secrets, box, mount } = broker
  const socket = await broker.connect()
  const found = secrets.find.bind(secrets)
  secrets.find = async (boxId, host) => {
    const result = await found(boxId, host)
    secrets.unmount(box.boxId, mount)
    return result
  }
  t.equal(await sendRaw(socket, GET), '')
  t.equal(broker.upstream.serverNames.length, 0)
  secrets.mount(box.boxId, mount)
  await t.rejects(
    broker.openWebSocket(),
    { message: 'refused with 403' },
    'also of a connection that is being opened',
  )
})

t.test('a cut by a wildcard closes the connections to all hosts below it', async (t) => {
  const broker = await startBroker(t)
  broker.secrets.mount(broker.box.boxId, {
    secretId: 'sec_2',
    placeholder: 'p2',
    value: 'second',
    hosts: ['*.example.org'],
  })
  const [below, deep, exact] = await Promise.all(
    ['a.example.org', 'a.b.example.org', HOST].map((host) => broker.connect({}, host)),
  )
  broker.secrets.events.emit('cut', { boxId: broker.box.boxId, patterns: ['*.example.org'] })
  await waitUntil('both are closed', () => [below, deep].every((socket) => socket?.destroyed))
  t.equal(exact?.destroyed, false)
})
