// The listener of a box: which connections it accepts, where it sends them, and what it keeps over a restart of the agent.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createEnvironmentFactory } from '../../../agent/exec/environment.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import {
  createEchoServer,
  createHeader,
  createLog,
  listen,
  openBroker,
  openClient,
  readProxy,
  requestPlain,
  startFakeCoordinator,
} from './support.ts'

const COVERED = 'api.example.com'
const HOSTS = [COVERED, '*.example.org', 'refused.example.net']

async function setUp(t: Test, { hosts = HOSTS }: { hosts?: string[] } = {}) {
  const coordinator = await startFakeCoordinator(t, [COVERED, 'a.b.example.org'])
  const dir = join(createTempDir(t, 'broker'), 'broker')
  const { broker, boxId } = await openBroker(t, { dir, url: coordinator.url })
  const result = await broker.update({ certificate: coordinator.ca, hosts })
  const proxy = readProxy(broker.readVariables())
  return { coordinator, dir, broker, boxId, result, proxy, header: createHeader(proxy.credential) }
}

t.test('a host of a secret: over the coordinator, with the credential of the box', async (t) => {
  const { coordinator, boxId, proxy, header } = await setUp(t)
  coordinator.requests.length = 0
  const client = await openClient(t, proxy.port)
  const refused = await client.request(`${COVERED}:443`)
  t.match(refused, /^HTTP\/1\.1 407 [\s\S]*\r\nProxy-Authenticate: Basic /)
  t.match(await client.request(`${COVERED}:443`, createHeader('0'.repeat(48))), /^HTTP\/1\.1 407 /)
  t.same(coordinator.requests, [], 'nothing is dialled without the credential')
  t.match(await client.request(`API.Example.com.:443`, header), /^HTTP\/1\.1 200 /, 'on the same connection')
  client.socket.write('bytes of ')
  client.socket.end('TLS')
  t.equal(await client.readRest(), 'bytes of TLS', 'both directions, and the end of each')
  t.same(coordinator.requests, [{ host: COVERED, box: boxId, authorization: 'Bearer bxt_test' }])

  const other = await openClient(t, proxy.port)
  t.match(await other.request('a.b.example.org:443', header), /^HTTP\/1\.1 200 /, 'a wildcard')
  other.socket.end('x')
  t.equal(await other.readRest(), 'x')
})

t.test('refused requests on one connection leave no listeners', async (t) => {
  const { proxy } = await setUp(t)
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const client = await openClient(t, proxy.port)
  for (let n = 0; n < 20; n += 1) t.match(await client.request(`${COVERED}:443`), /^HTTP\/1\.1 407 /)
  t.same(warnings, [])
})

t.test('the coordinator refuses, or cannot be reached', async (t) => {
  const { coordinator, proxy, header } = await setUp(t)
  const client = await openClient(t, proxy.port)
  t.match(await client.request('refused.example.net:443', header), /^HTTP\/1\.1 403 [\s\S]*no secret that is/)
  await client.readRest()

  const { broker } = await openBroker(t, { dir: createTempDir(t, 'broker'), url: 'http://127.0.0.1:1' })
  const result = await broker.update({ certificate: coordinator.ca, hosts: HOSTS })
  t.match(result, { state: 'failed', message: /listener responded with status 502/ })
  const unreachable = readProxy(broker.readVariables())
  const second = await openClient(t, unreachable.port)
  const response = await second.request(`${COVERED}:443`, createHeader(unreachable.credential))
  t.match(response, /^HTTP\/1\.1 502 [\s\S]*ECONNREFUSED/)
})

t.test('a coordinator that is being restarted', async (t) => {
  const { url, ca } = await startFakeCoordinator(t, [COVERED])
  const dir = createTempDir(t, 'broker')
  let attempts = 0
  const readUrl = () => (++attempts === 2 ? url : `unix:${join(dir, 'missing')}`)
  const { broker } = await openBroker(t, { dir, url: readUrl, retryMs: DEADLINE_MS })
  t.same(await broker.update({ certificate: ca, hosts: HOSTS }), { state: 'ready', message: null })
  t.equal(attempts, 2)

  const { port, credential } = readProxy(broker.readVariables())
  const client = await openClient(t, port)
  client.socket.write(`CONNECT ${COVERED}:443 HTTP/1.1\r\nHost: a\r\n${createHeader(credential)}\r\n`)
  await waitUntil('it is tried again', () => attempts > 3)
  client.socket.destroy()
  await broker.close()
  t.pass('close() does not wait for the coordinator')
})

t.test('other targets are dialled from the box, without a credential', async (t) => {
  const { coordinator, proxy } = await setUp(t, { hosts: ['127.0.0.1'] })
  coordinator.requests.length = 0
  const port = await listen(t, createEchoServer())
  // An IPv6 socket is listed in another table of the kernel.
  for (const host of ['127.0.0.1', '::ffff:127.0.0.1']) {
    const client = await openClient(t, proxy.port, host)
    t.match(await client.request(`127.0.0.1:${port}`), /^HTTP\/1\.1 200 /, 'another port than 443')
    client.socket.end('hello')
    t.equal(await client.readRest(), 'hello')
  }
  const early = await openClient(t, proxy.port)
  early.socket.end(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: a\r\n\r\nfirst bytes`)
  t.match(await early.readRest(), /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nfirst bytes$/)
  const closed = await openClient(t, proxy.port)
  t.match(await closed.request('127.0.0.1:1'), /^HTTP\/1\.1 502 [\s\S]*ECONNREFUSED/)
  t.same(coordinator.requests, [])

  const resetting = await listen(
    t,
    createServer((socket: Socket) => void socket.once('data', () => socket.resetAndDestroy())),
  )
  const reset = await openClient(t, proxy.port)
  t.match(await reset.request(`127.0.0.1:${resetting}`), /^HTTP\/1\.1 200 /)
  const failed = once(reset.socket, 'close')
  reset.socket.write('x')
  await t.rejects(failed, { code: 'ECONNRESET' })
})

t.test('requests that are not CONNECT, and invalid targets', async (t) => {
  const { proxy } = await setUp(t)
  const plain = await requestPlain(proxy.port, 'http://example.com/')
  t.match(plain, { status: 405, text: /only connects to HTTPS servers/ })
  for (const target of [
    'example.com',
    'example.com:0',
    'example.com:70000',
    'user@example.com:443',
    'a/b:443',
  ]) {
    const client = await openClient(t, proxy.port)
    t.match(await client.request(target), /^HTTP\/1\.1 400 /, target)
    await client.readRest()
  }
})

t.test('another user of the machine', { skip: process.getuid?.() !== 0 && 'needs root' }, async (t) => {
  const { proxy, header } = await setUp(t)
  const request = `CONNECT ${COVERED}:443 HTTP/1.1\r\nHost: a\r\n${header}\r\n`
  const script = `exec 3<>/dev/tcp/127.0.0.1/${proxy.port}; printf '%s' "$REQUEST" >&3; cat <&3`
  const run = async (uid: number) => {
    const env = { PATH: '/usr/bin:/bin', REQUEST: request }
    const child = spawn('bash', ['-c', script], { uid, gid: uid, env, stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    const first = once(child.stdout, 'data')
    const response = String((await first)[0])
    child.kill('SIGKILL')
    return response
  }
  t.match(await run(54_321), /^HTTP\/1\.1 403 [\s\S]*belongs to a box of another user/)
  t.match(await run(0), /^HTTP\/1\.1 200 /)
})

t.test('variables and trusted certificates', async (t) => {
  const { broker, coordinator, dir } = await setUp(t)
  const variables = broker.readVariables()
  const { NODE_EXTRA_CA_CERTS = '', SSL_CERT_FILE = '' } = variables
  t.equal(readFileSync(NODE_EXTRA_CA_CERTS, 'utf8').trim(), coordinator.ca.trim())
  const bundle = readFileSync(SSL_CERT_FILE, 'utf8')
  t.ok(bundle.split('-----BEGIN CERTIFICATE-----').length > 50, 'the authorities of the system')
  t.ok(bundle.endsWith(`${coordinator.ca.trim()}\n`))
  t.equal(statSync(join(dir, 'broker.json')).mode & 0o777, 0o600)
  for (const file of [NODE_EXTRA_CA_CERTS, SSL_CERT_FILE])
    t.equal(statSync(file).mode & 0o777, 0o644, 'other users of the box read the certificates')

  const createEnv = createEnvironmentFactory({ HOME: '/home', A: '1' }, broker.readVariables)
  t.match(createEnv({ A: '2' }, undefined), { ...variables, HOME: '/home', A: '2' })
  const own = createEnv({ https_proxy: 'http://own:1' }, { CURL_CA_BUNDLE: '/own' })
  t.match(own, { https_proxy: 'http://own:1', CURL_CA_BUNDLE: '/own', NO_PROXY: /localhost/ })
  t.notOk('HTTPS_PROXY' in own, 'the notation of the other case is removed')

  await broker.update(null)
  t.same(createEnv(), { HOME: '/home', A: '1' }, 'no secret is mounted any more')
  const { port, credential } = readProxy(variables)
  const target = await listen(t, createEchoServer())
  const client = await openClient(t, port)
  const response = await client.request(`127.0.0.1:${target}`, createHeader(credential))
  t.match(response, /^HTTP\/1\.1 200 /, 'running processes still use the listener')
})

t.test('the test request', async (t) => {
  const { result, broker } = await setUp(t)
  t.same(result, { state: 'ready', message: null })
  const { ca } = await startFakeCoordinator(t, [])
  const other = await broker.update({ certificate: ca, hosts: HOSTS })
  t.match(other, { state: 'failed', message: /^The test request to the coordinator failed: .*certificate/ })
  t.same(await broker.update(null), null)
})

t.test('a restart of the agent', async (t) => {
  const { broker, coordinator, dir, header, proxy } = await setUp(t)
  const variables = broker.readVariables()
  const client = await openClient(t, proxy.port)
  t.match(await client.request(`${COVERED}:443`, header), /^HTTP\/1\.1 200 /)
  const closed = new Promise((resolve) => client.socket.once('close', resolve))
  await broker.close()
  await closed

  const { log, lines } = createLog()
  const { url } = coordinator
  const { broker: second } = await openBroker(t, { dir, url, log })
  t.same(second.readVariables(), variables, 'the port and the credential stay')
  const again = await openClient(t, proxy.port)
  t.match(
    await again.request(`${COVERED}:443`, header),
    /^HTTP\/1\.1 200 /,
    'before the coordinator sends hosts',
  )
  await second.close()
  t.same(lines, [])

  const program = createServer().listen(proxy.port, '127.0.0.1')
  t.teardown(() => program.close())
  await once(program, 'listening')
  const { broker: third } = await openBroker(t, { dir, url, log })
  const moved = readProxy(third.readVariables())
  t.not(moved.port, proxy.port)
  t.not(moved.credential, proxy.credential, 'the program on the port may have received the old one')
  t.match(lines, [{ port: proxy.port, newPort: moved.port, msg: /another program has the port/ }])
  await third.close()
  const { broker: fourth } = await openBroker(t, { dir, url })
  t.same(readProxy(fourth.readVariables()), moved)
})
