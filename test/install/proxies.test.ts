// The configurations of nginx and Caddy for TLS: the API, streams, transfers without buffering, WebSockets, the addresses of
// clients, and the connections of agents.

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import {
  type CoordinatorWithBox,
  HIGH_EDGE_LIMITS,
  startCoordinatorWithBox,
} from '../e2e/coordinator-with-box.ts'
import { boxNode } from '../support/box-node.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { requires } from '../support/requires.ts'
import { transferBothWays } from '../support/transfer-files.ts'
import { readAll, startTestAgent, startTunnelServer } from '../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import { CERTIFICATE, PROXIES, startProxy } from './start-proxy.ts'

setDefaultCACertificates([...getCACertificates('default'), readFileSync(CERTIFICATE, 'utf8')])

/** Responds with the headers, and after an upgrade with what it received in upper case. Prints its port. */
const APP = `
  const app = require("node:http").createServer(({ headers }, response) => response.end(JSON.stringify(headers)))
  app.on("upgrade", (request, socket, head) => {
    let text = head.toString()
    socket.write(["HTTP/1.1 101 Switching Protocols", "Upgrade: raw", "Connection: Upgrade", "", ""].join("\\r\\n"))
    socket.on("error", () => undefined)
    socket.on("data", (data) => {
      text += data
      if (text === "hello") socket.end(text.toUpperCase())
    })
  })
  app.listen(0, "127.0.0.1", function () { console.log(this.address().port) })`

const MIB = 1024 * 1024
/** More than the buffers of the sockets and of a proxy between the sender and the receiver. */
const TRANSFER_BYTES = 48 * MIB
/** An address of this machine that no proxy uses. */
const CLIENT_ADDRESS = '127.0.0.2'

/** Sends a request from CLIENT_ADDRESS on a new connection, and resolves with the response. */
async function send(url: string, options: RequestOptions, body?: string): Promise<IncomingMessage> {
  const sent = request(url, { agent: false, localAddress: CLIENT_ADDRESS, ...options })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return response
}

const readText = async (response: IncomingMessage): Promise<string> =>
  (await readAll(response as AsyncIterable<Buffer>)).toString()

/** Responds with its id. After stop() it refuses requests with 503, as a replica that stops does. */
async function startReplica(t: Test, id: string) {
  let isStopping = false
  let bodies = 0
  const server = createServer(async (request, response) => {
    const isReadiness = request.url === '/readyz'
    if (request.url === '/suspended') return response.writeHead(503).end('box_not_running')
    request.once('data', () => {
      bodies += 1
    })
    // Without a response when the body is broken off.
    if (request.method === 'POST' && (await request.toArray().catch(() => null)) === null) return
    response.writeHead(isStopping ? 503 : 200).end(isReadiness || isStopping ? '' : id)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  async function kill(): Promise<void> {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  t.teardown(() => server.listening && kill())
  return {
    target: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The bodies that have begun. */
    countBodies: () => bodies,
    stop() {
      isStopping = true
    },
    kill,
  }
}

/** A client that disconnects before the end of its body, when `hasArrived` returns true. */
async function breakOff(url: string, hasArrived: () => boolean): Promise<void> {
  const headers = { 'content-length': 1_000 }
  const sent = request(url, { method: 'POST', agent: false, headers }).on('error', () => undefined)
  sent.write('the begin')
  await waitUntil('the begin of the body has arrived', hasArrived)
  sent.destroy()
}

/** The directory of the home of the box. */
const homeOf = ({ dataDir, box }: CoordinatorWithBox): string => join(dataDir, 'boxes', box.id, 'home')

for (const name of PROXIES) {
  t.test(`clients through ${name}`, { skip: requires(name) }, async (t) => {
    const env = {
      ...limitsEnv(HIGH_EDGE_LIMITS),
      BOXWOOD_TRUSTED_PROXIES: '127.0.0.1',
      BOXWOOD_SHARE_BASE: 'https://ports.localhost',
    }
    const coordinator = await startCoordinatorWithBox(t, { env })
    const { key, box, instance } = coordinator
    const { url, httpPort, readLog } = await startProxy(t, name, new URL(coordinator.url).host)
    const headers = { authorization: `Bearer ${key}` }
    const edge = `${url}/v1/box/${box.hostname}`

    await t.test('a browser with large cookies', async (t) => {
      const get = (cookies: number) => {
        const cookie = Array.from({ length: cookies }, (_, i) => `bomb${i}=${'x'.repeat(3900)}`).join('; ')
        return send(`${url}/api/v1/me`, { headers: { ...headers, cookie } })
      }
      t.equal((await get(16)).statusCode, 200, 'they are ignored')
      for (const cookies of [30, 180]) {
        const response = await get(cookies)
        t.equal(response.statusCode, 431)
        t.match(await readText(response), /<script type="module">[\s\S]* document\.cookie = /)
      }
    })

    await t.test('the API, and the address of the client', async (t) => {
      const response = await send(`${url}/api/v1/boxes`, { headers })
      t.equal(response.statusCode, 200)
      t.equal(JSON.parse(await readText(response)).boxes[0].hostname, box.hostname)
      const secret = readFileSync(instance.dataDirectory.signInKeyFile, 'utf8').trim()
      const signIn = await send(
        `${url}/api/v1/sign-in/owner`,
        { method: 'POST', headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9' } },
        JSON.stringify({ secret }),
      )
      t.equal(signIn.statusCode, 200, await readText(signIn))
      const sessions = await instance.context.db.selectFrom('sessions').select('address').execute()
      t.same(sessions, [{ address: CLIENT_ADDRESS }], 'not the address that the client has sent')
    })

    await t.test('a shared port, with the address of the client', async (t) => {
      const { json } = await coordinator.boxRequest('POST', '/exec', {
        command: boxNode(APP),
        detached: true,
      })
      const port = await waitUntil('the app listens', async () => {
        const status = await coordinator.boxRequest('GET', `/exec/${json.processId}`)
        return Number(status.json.stdout)
      })
      const created = await coordinator.api('POST', `/boxes/${box.id}/port-shares`, {
        port,
        access: 'public',
      })
      const { host } = new URL(created.json.share.origin)
      // The certificate of the test has no names of links.
      const target = { servername: host, rejectUnauthorized: false }
      const response = await send(`${url}/a`, {
        ...target,
        headers: { host, 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'http' },
      })
      t.equal(response.statusCode, 200)
      t.match(JSON.parse(await readText(response)), {
        host,
        'x-forwarded-for': CLIENT_ADDRESS,
        'x-forwarded-proto': 'https',
        'x-forwarded-host': host,
      })
      const upgrade = request(`${url}/`, {
        ...target,
        agent: false,
        headers: { host, connection: 'Upgrade', upgrade: 'raw' },
      })
      upgrade.end()
      const [, socket] = (await once(upgrade, 'upgrade')) as [IncomingMessage, Duplex, Buffer]
      socket.write('hello')
      t.equal(await text(socket), 'HELLO')
    })

    await t.test('events arrive while the stream is open', async (t) => {
      const command = 'echo first; while [ ! -e continue ]; do sleep 0.05; done; echo second'
      const { processId } = await coordinator.exec(command, { detached: true })
      const response = await send(`${edge}/exec/${processId}/stream`, { headers })
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      const ended = once(response, 'end')
      await waitUntil('the first line has arrived', () => text.includes('first'))
      t.notMatch(text, 'second')
      await coordinator.exec('touch continue')
      await ended
      t.match(text, 'second')
    })

    await t.test('an upload reaches the box while it is sent', async (t) => {
      const content = randomBytes(TRANSFER_BYTES)
      const upload = request(`${edge}/upload?path=uploaded`, {
        method: 'PUT',
        agent: false,
        headers: { ...headers, 'content-type': 'application/octet-stream', 'content-length': content.length },
      })
      upload.write(content.subarray(0, TRANSFER_BYTES / 2))
      const home = homeOf(coordinator)
      const sizes = () =>
        readdirSync(home).map((file) => statSync(join(home, file), { throwIfNoEntry: false })?.size ?? 0)
      await waitUntil('half of the file is on the box', () => Math.max(...sizes()) >= TRANSFER_BYTES / 4)
      upload.end(content.subarray(TRANSFER_BYTES / 2))
      const [response] = (await once(upload, 'response')) as [IncomingMessage]
      t.equal(response.statusCode, 200, await readText(response))
      t.ok(readFileSync(join(home, 'uploaded')).equals(content))
    })

    await t.test('a download is complete, also with a client that reads slowly', async (t) => {
      const response = await send(`${edge}/download?path=uploaded`, { headers })
      t.equal(response.statusCode, 200)
      // A second request on the box works while the client does not read.
      t.match(await coordinator.exec('echo hello'), { stdout: 'hello\n' })
      const content = await readAll(response as AsyncIterable<Buffer>)
      t.ok(content.equals(readFileSync(join(homeOf(coordinator), 'uploaded'))))
    })

    await t.test('box exec and box cp', async (t) => {
      const { NODE_OPTIONS: _, ...inherited } = process.env
      const box = (...args: string[]) =>
        promisify(execFile)(join(PROJECT_DIR, 'box'), args, {
          env: { ...inherited, BOXWOOD_URL: url, BOXWOOD_API_KEY: key, NODE_EXTRA_CA_CERTS: CERTIFICATE },
        })
      const { hostname } = coordinator.box
      // An attached command is a WebSocket.
      t.equal((await box('exec', hostname, '--', 'echo', 'attached')).stdout, 'attached\n')
      await box('cp', '-q', join(PROJECT_DIR, 'LICENSE'), `${hostname}:copied`)
      t.equal(
        readFileSync(join(homeOf(coordinator), 'copied'), 'utf8'),
        readFileSync(join(PROJECT_DIR, 'LICENSE'), 'utf8'),
      )
    })

    if (name === 'nginx') {
      t.notMatch(readLog(), 'buffered to a temporary file')
      const redirect = await fetch(`http://127.0.0.1:${httpPort}/docs`, { redirect: 'manual' })
      t.match([redirect.status, redirect.headers.get('location')], [308, /^https:\/\/127\.0\.0\.1\/docs$/])
    }
  })

  t.test(`three replicas behind ${name}`, { skip: requires(name) }, async (t) => {
    const replicas = await Promise.all(['a', 'b', 'c'].map((id) => startReplica(t, id)))
    const { url } = await startProxy(
      t,
      name,
      replicas.map(({ target }) => target),
    )
    const collect = async () => {
      const responses = await Promise.all(Array.from({ length: 12 }, () => send(`${url}/`, {})))
      return new Set(await Promise.all(responses.map(readText)))
    }
    await waitUntil('requests reach all replicas', async () => (await collect()).size === 3)

    // Neither is a failure of a replica: a few of them must not take all replicas out of service.
    const countBodies = () => replicas.reduce((sum, replica) => sum + replica.countBodies(), 0)
    const post = async () =>
      (await send(`${url}/`, { method: 'POST', headers: { 'content-length': 0 } })).statusCode
    for (let number = 0; number < 6; number++) {
      const before = countBodies()
      await breakOff(`${url}/`, () => countBodies() > before)
      t.equal(await post(), 200, `after body ${number} that was broken off`)
    }
    for (let number = 0; number < 6; number++) {
      t.equal((await send(`${url}/suspended`, {})).statusCode, 503)
      t.equal(await post(), 200, `after response ${number} of a suspended box`)
    }

    replicas[0]?.stop()
    // Caddy forwards the refusals until its next check.
    const areRefused = async () => (await collect()).has('')
    if (name === 'nginx') t.equal(await areRefused(), false)
    else await waitUntil('no request is refused', async () => !(await areRefused()))
    await replicas[1]?.kill()
    t.same(await collect(), new Set(['c']), 'requests that reach no replica are repeated')
  })

  for (const hasPath of [false, true])
    t.test(`agents through ${name}${hasPath ? ' with a path' : ''}`, { skip: requires(name) }, async (t) => {
      const coordinator = await startTunnelServer({ dialBackTimeoutMs: DEADLINE_MS })
      t.after(() => coordinator.close())
      const { url } = await startProxy(t, name, `127.0.0.1:${coordinator.port}`, hasPath)
      const box = coordinator.addBox()
      const agent = await startTestAgent(box, url, (router) => {
        router.add('GET', '/hello', async () => ({ hello: 'through the proxy' }))
      })
      t.after(() => agent.close())
      const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
      const response = await tunnel.call({ method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS })
      t.same(JSON.parse(response.body.toString()), { hello: 'through the proxy' })

      await transferBothWays(t, coordinator, box, url, 8 * MIB + 1)
    })
}
