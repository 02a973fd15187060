// Connections to TCP ports of a box over HTTP and WebSocket.
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { connectToPort, startPortServer } from '../support/port-client.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const coordinator = sharedCoordinator
const { url, key, box, boxRequest } = coordinator

const startServer = (t: Test) => startPortServer(t, sharedCoordinator)
const connect = (t: Test, port: number | string, bearer = key, name = box.hostname) =>
  connectToPort(t, { url, key: bearer, name, port })

async function open(t: Test, port: number, bearer = key) {
  const { ws, refusal } = await connect(t, port, bearer)
  if (refusal !== null) throw new Error(`refused: ${JSON.stringify(refusal)}`)
  return { ws, connection: new TcpOverWebSocket(ws).on('error', () => undefined) }
}

t.test('connects to a server on the box, with the end of each direction', async (t) => {
  const port = await startServer(t)
  const { ws, connection } = await open(t, port)
  const closed = once(ws, 'close')
  connection.end('request')
  t.equal(await text(connection), 'hello REQUEST')
  t.equal((await closed)[0], 1000)
})

t.test('bytes arrive at once, and the connection of a client that disconnects is closed', async (t) => {
  const port = await startServer(t)
  const { ws, connection } = await open(t, port)
  let received = ''
  connection.setEncoding('utf8').on('data', (data: string) => {
    received += data
  })
  connection.write('echo')
  await waitUntil('the server responds', () => received === 'hello now ')
  ws.terminate()
  await waitUntil('the slot is free', () => coordinator.instance.context.edge.limiter.acquiredCount() === 0)
})

t.test('refusals', async (t) => {
  const refusal = async (
    ...args: Parameters<typeof connect> extends [Test, ...infer Rest] ? Rest : never
  ) => {
    const { refusal } = await connect(t, ...args)
    return refusal && [refusal.status, refusal.code, refusal.message]
  }
  t.strictSame(await refusal(1), [404, 'not_found', 'No process of the box listens on port 1.'])
  for (const port of ['0', '65536', 'http']) t.match(await refusal(port), [404, 'not_found'], port)
  t.match(await refusal(1, key, 'nosuch'), [404, 'not_found'])
  t.match(await refusal(1, 'dcp_wrong'), [401, 'unauthorized'])
  const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  t.match(await refusal(1, readOnly), [403, 'key_access_denied'])
  const plain = await boxRequest('GET', '/ports/1')
  t.match([plain.status, plain.json.error.code], [400, 'invalid_request'])
})

t.test('a revoked key: open connections are closed with code 3000', async (t) => {
  const port = await startServer(t)
  const owner = await createTestSession(coordinator)
  const { json } = await coordinator.api('POST', '/keys', { name: 'forward' }, owner)
  const { ws, connection } = await open(t, port, json.secret)
  connection.resume()
  const closed = once(ws, 'close')
  t.equal((await coordinator.api('DELETE', `/keys/${json.key.id}`, undefined, owner)).status, 204)
  const [code, reason] = await closed
  t.same([code, String(reason)], [3000, 'unauthorized'])
})

t.test('clients that violate the protocol are disconnected', async (t) => {
  const port = await startServer(t)
  for (const message of ['text', Buffer.alloc(100_000)]) {
    const { ws, refusal } = await connect(t, port)
    t.equal(refusal, null)
    ws.resume()
    const closed = once(ws, 'close')
    ws.send(message)
    await closed
  }
})

t.test('the audit log has one event for all connections to a port', async (t) => {
  const port = await startServer(t)
  const [first, second] = [await open(t, port), await open(t, port)]
  for (const { ws } of [first, second]) ws.terminate()
  const { json } = await coordinator.api('GET', `/audit?kind=box.forward&box=${box.id}&limit=100`)
  const events = json.events.filter(({ detail }: { detail: { port: number } }) => detail.port === port)
  t.match(events, [{ kind: 'box.forward', boxId: box.id }])
  t.equal(events.length, 1)
})

t.test('a ping of the client gets a pong', async (t) => {
  const { ws } = await open(t, await startServer(t))
  ws.resume()
  const pong = once(ws, 'pong')
  ws.ping('x')
  t.equal(String((await pong)[0]), 'x')
})
