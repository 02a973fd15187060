// Requests that are forwarded to a coordinator that stops responding, while its connections stay open.
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { SecretValue } from '../../../coordinator/base/sealing/secret-value.ts'
import { createForwardToReplica, type ForwardResult } from '../../../coordinator/http/forward-to-replica.ts'
import { serveUpgrade } from '../../../coordinator/http/websocket.ts'
import { createPeers, type Peers } from '../../../coordinator/replicas/peers.ts'
import { renewReplica } from '../../../coordinator/replicas/store.ts'
import { createFakeReplica, TEST_HOST } from '../../support/replica.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { SLOWDOWN, waitUntil } from '../../support/wait-until.ts'

const HOUR_MS = 60 * 60_000
const OTHER = 'rep_other'

async function listen(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** Responds to nothing while `isCut`. */
async function startOther(t: Test) {
  const other = { isCut: false, pings: 0, port: 0 }
  const server = createServer((request, response) => {
    if (request.url === '/healthz') other.pings += 1
    if (other.isCut || request.url === '/silent') return
    if (request.url === '/stream') response.writeHead(200).write('first')
    else response.end('served')
  })
  server.on('upgrade', (_request, socket: Socket) => {
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n')
  })
  other.port = await listen(t, server)
  return other
}

/** Forwards all requests, and responds with the result when the other coordinator does not. */
async function startForwarding(t: Test, peers: Peers) {
  const results: ForwardResult[] = []
  const front = createServer((request, response) => {
    const forward = createForwardToReplica(peers, { request, response }, { clientAddress: null })
    forward(OTHER).then((result) => {
      results.push(result)
      if (result !== 'forwarded') response.end(result)
    })
  })
  front.on('upgrade', (request, socket, head) =>
    serveUpgrade(request, socket, head, (...exchange) => front.emit('request', ...exchange)),
  )
  const port = await listen(t, front)
  return { port, results, get: (path: string) => fetch(`http://127.0.0.1:${port}${path}`) }
}

t.test('they end, and later ones are not sent until it responds again', async (t) => {
  const db = await sqliteForTest(t)
  const other = await startOther(t)
  const url = `http://127.0.0.1:${other.port}`
  const row = { id: OTHER, host: TEST_HOST, version: '1.0.0', name: OTHER, url, settings: '{}' }
  await renewReplica(db, row, HOUR_MS)
  const peers = createPeers({
    db,
    replica: createFakeReplica('rep_own'),
    openKey: async () => new SecretValue('ab'.repeat(32)),
    log: { error: () => undefined },
    watch: { intervalMs: 100, pingMs: 500 * SLOWDOWN },
  })
  await peers.open()
  t.teardown(() => peers.close())
  const { port, results, get } = await startForwarding(t, peers)

  t.equal(await (await get('/')).text(), 'served')
  const silent = get('/silent')
  const stream = await get('/stream')
  const headers = { connection: 'upgrade', upgrade: 'test' }
  const upgrading = httpRequest({ host: '127.0.0.1', port, path: '/', headers }).end()
  const [, socket] = (await once(upgrading, 'upgrade')) as [IncomingMessage, Socket]
  socket.on('error', () => undefined).resume()
  await waitUntil('pings are sent', () => other.pings > 3)
  t.same(results, ['forwarded', 'forwarded', 'forwarded'], 'a response to a ping is enough')

  other.isCut = true
  const closed = once(socket, 'close')
  t.equal(await (await silent).text(), 'failed', 'a request without a response')
  await t.rejects(stream.text(), 'a response that has begun')
  await closed
  t.pass('an upgraded connection')
  t.equal(await (await get('/')).text(), 'unconnected', 'the next request is not sent')
  other.isCut = false
  await waitUntil('requests are sent again', async () => (await (await get('/')).text()) === 'served')

  const { pings } = other
  await waitUntil('the last checks are complete', async () => {
    const before = other.pings
    await new Promise((resolve) => setTimeout(resolve, 500))
    return other.pings === before
  })
  t.ok(other.pings - pings < 10, 'no pings without requests')
})
