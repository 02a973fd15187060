// The HTTPS listener with a certificate from files.

import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { pino } from 'pino'
import t from 'tap'
import { WebSocket } from 'ws'
import { loadConfig } from '../../../coordinator/server/config.ts'
import { createCertificate } from '../../support/certificate.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { requires } from '../../support/requires.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'

const HOST = 'boxes.example'
const dir = createTempDir(t, 'tls')
const options = { skip: requires('openssl') }
const ENV = {
  BOXWOOD_TLS_LISTEN: '127.0.0.1:0',
  BOXWOOD_TLS_CERT: join(dir, 'cert'),
  BOXWOOD_TLS_KEY: join(dir, 'key'),
  BOXWOOD_SHARE_BASE: HOST,
}

t.test('serves the API, WebSockets and links with a certificate from files', options, async (t) => {
  const certificate = createCertificate(dir, HOST)
  const coordinator = await startTestCoordinator(t, { env: ENV })
  const { tlsPort: port } = coordinator.instance
  if (port === null) throw new Error('there is no listener')
  const trust = { host: '127.0.0.1', port, ca: certificate.ca, servername: HOST, agent: false as const }

  async function get(path: string, host = HOST) {
    const sent = request({
      ...trust,
      path,
      headers: { host, authorization: `Bearer ${coordinator.key}` },
    }).end()
    const [response] = await once(sent, 'response')
    return { status: response.statusCode, body: Buffer.concat(await response.toArray()).toString() }
  }

  t.match(JSON.parse((await get('/api/v1/me')).body), { key: { kind: 'api' } })
  t.match(await get('/', `none.${HOST}`), { status: 404 })
  const ws = new WebSocket(`wss://127.0.0.1:${port}/v1/box/none/terminal`, {
    ...trust,
    headers: { authorization: `Bearer ${coordinator.key}` },
  })
  t.match(await once(ws, 'unexpected-response').then(([, response]) => response.statusCode), 404)

  // A client without TLS, and one that does not complete the handshake.
  const plain = connectTcp(port, '127.0.0.1').on('error', () => undefined)
  plain.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(plain.resume(), 'close')
  const silent = connectTcp(port, '127.0.0.1').on('error', () => undefined)
  await once(silent, 'connect')

  const readFingerprint = async () => {
    const socket = connectTls(trust)
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
  const before = await readFingerprint()
  const next = createTempDir(t, 'tls-next')
  const renewed = createCertificate(next, HOST)
  trust.ca = `${certificate.ca}${renewed.ca}`
  writeFileSync(ENV.BOXWOOD_TLS_CERT, 'not a certificate')
  copyFileSync(join(next, 'key'), ENV.BOXWOOD_TLS_KEY)
  t.equal(await readFingerprint(), before)
  copyFileSync(join(next, 'cert'), ENV.BOXWOOD_TLS_CERT)
  await waitUntil('the new certificate is used', async () => (await readFingerprint()) !== before)

  await coordinator.close()
  t.equal(silent.destroyed || (await once(silent.resume(), 'close').then(() => true)), true)
})

t.test('connections without a handshake keep no client out', options, async (t) => {
  const { ca } = createCertificate(dir, HOST)
  const env = {
    ...limitsEnv({ maxConnections: 16, addressConnections: 4, headersTimeoutSeconds: 3600 }),
    ...ENV,
  }
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const { instance } = await startTestCoordinator(t, { env, log })
  const port = instance.tlsPort ?? 0

  async function connectSilently(address: string) {
    const socket = connectTcp({ host: '127.0.0.1', port, localAddress: address }).on('error', () => undefined)
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return socket.resume()
  }
  const get = async () => {
    const agent = false
    const sent = request({ host: '127.0.0.1', port, ca, servername: HOST, agent, path: '/healthz' }).end()
    const [response] = await once(sent, 'response')
    response.resume()
    return response.statusCode
  }

  const others = await Promise.all(['127.0.0.2', '127.0.0.3'].map(connectSilently))
  const silent: Socket[] = []
  for (let i = 0; i < 20; i += 1) silent.push(await connectSilently('127.0.0.1'))
  t.equal(await get(), 200)
  t.notOk(
    others.some(({ destroyed }) => destroyed),
    'other addresses are not affected',
  )
  await waitUntil('the oldest ones are closed', () => silent.slice(0, 17).every(({ closed }) => closed))
  t.match(
    lines.filter((line) => line.includes('too many connections')).map((line) => JSON.parse(line)),
    [{ limit: 'address', address: '127.0.0.1' }],
    'one line is logged',
  )
  for (const socket of [...silent, ...others]) socket.resetAndDestroy()
  const { connections } = instance.context
  await waitUntil('all are removed', () => connections.size === 0)
})

t.test('files that cannot be used fail the start', options, async (t) => {
  const file = join(createTempDir(t, 'no-cert'), 'cert')
  for (const text of [undefined, 'not a certificate']) {
    if (text !== undefined) writeFileSync(file, text)
    await t.rejects(startTestCoordinator(t, { env: { ...ENV, BOXWOOD_TLS_CERT: file } }), {
      message: /^The certificate in .*cert and its key in .*key cannot be used: .*BOXWOOD_TLS_CERT/,
    })
  }
})

t.test('the variables must be set together', async (t) => {
  const message = 'BOXWOOD_TLS_LISTEN, BOXWOOD_TLS_CERT and BOXWOOD_TLS_KEY must be set together.'
  t.throws(() => loadConfig({ BOXWOOD_TLS_LISTEN: '0.0.0.0:443' }), { message })
  t.throws(() => loadConfig({ BOXWOOD_TLS_CERT: 'cert', BOXWOOD_TLS_KEY: 'key' }), { message })
})
