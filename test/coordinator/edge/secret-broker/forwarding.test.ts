// Requests of programs on a box to a host of a secret work as without the broker, have the value, and show only asterisks.
import { once } from 'node:events'
import { request as createRequest, type IncomingMessage } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { BROKER_TEST_HOST } from '../../../../shared/secret-hosts.ts'
import { sendRaw } from '../../../support/broker/raw.ts'
import { send } from '../../../support/broker/send.ts'
import {
  HOST,
  PLACEHOLDER,
  startBroker,
  type TestBroker,
  VALUE,
} from '../../../support/broker/start-broker.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const authorization = `Bearer ${PLACEHOLDER}`
const STARS = '*'.repeat(VALUE.length)

const readMetric = async ({ broker }: TestBroker, name: string) =>
  await broker.metrics.find((metric) => metric.name === name)?.collect()

const countConnections = async (broker: TestBroker) =>
  (await readMetric(broker, 'boxwood_broker_connections'))?.get('')

t.test('the host gets the value, and the program sees only asterisks', async (t) => {
  const broker = await startBroker(t, {
    listener: (request, response) => response.end(JSON.stringify(request.rawHeaders)),
  })
  const response = await send(broker, {
    headers: { authorization, 'user-agent': PLACEHOLDER, 'accept-encoding': 'br' },
  })
  t.equal(response.statusCode, 200)
  t.same(
    JSON.parse(response.text),
    [
      ...['Host', HOST, 'authorization', `Bearer ${STARS}`, 'user-agent', PLACEHOLDER],
      ...['Accept-Encoding', 'identity', 'Connection', 'keep-alive'],
    ].map((text) => (text === 'Host' ? 'host' : text)),
  )
  t.same(broker.upstream.serverNames, [HOST])
  t.same(broker.secrets.uses, [{ secretId: 'sec_1', boxId: broker.box.boxId, host: HOST }])
})

t.test('without a placeholder, nothing is recorded, and values are still masked', async (t) => {
  const broker = await startBroker(t, { listener: (_, response) => response.end(`stored: ${VALUE}`) })
  t.equal((await send(broker)).text, `stored: ${STARS}`)
  t.same(broker.secrets.uses, [])
})

t.test('a value that cannot be decrypted refuses only the requests that use its secret', async (t) => {
  const broker = await startBroker(t, {
    listener: (request, response) => response.end(String(request.headers['x-key'])),
  })
  const placeholder = `dcpsec_${'d'.repeat(32)}`
  broker.secrets.mount(broker.box.boxId, { secretId: 'damaged', placeholder, value: null, hosts: [HOST] })
  const basic = `Basic ${Buffer.from(`user:${placeholder}`).toString('base64')}`
  for (const headers of [{ 'x-key': placeholder }, { authorization: basic }]) {
    const response = await send(broker, { headers })
    t.match(response, { statusCode: 500, headers: { 'boxwood-broker-error': 'secret_damaged' } })
    t.match(response.text, /secret DAMAGED cannot be decrypted.*`box secrets rotate DAMAGED`/)
  }
  t.equal(broker.upstream.serverNames.length, 0)
  t.equal((await send(broker, { headers: { 'x-key': PLACEHOLDER } })).text, STARS)
  t.equal((await send(broker)).text, 'undefined')
  t.same(broker.secrets.uses.length, 1)
})

t.test('Basic credentials are sent with the value, and masked', async (t) => {
  const broker = await startBroker(t, {
    listener: (request, response) =>
      response.end(`${request.headers.authorization} ${request.headers['x-plain']}`),
  })
  const basic = `Basic ${Buffer.from(`user:${PLACEHOLDER}`).toString('base64')}`
  const sent = Buffer.from(`user:${VALUE}`).toString('base64')
  const seen: (string | undefined)[] = []
  broker.upstream.http.on('request', ({ headers }) => seen.push(headers.authorization))
  t.equal(
    (await send(broker, { headers: { authorization: basic } })).text,
    `Basic ${'*'.repeat(sent.length)} undefined`,
  )
  t.same(seen, [`Basic ${sent}`])
})

t.test('several requests use one connection to the host, also on several connections', async (t) => {
  const broker = await startBroker(t, { listener: (request, response) => response.end(request.url) })
  for (const paths of [
    ['/one?a=%20b', '/two', '//three/../x'],
    ['/four', '/five'],
  ]) {
    const socket = await broker.connect()
    for (const path of paths)
      t.match(await sendRaw(socket, `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, path), path)
    socket.destroy()
    await waitUntil('the connection is closed', async () => (await countConnections(broker)) === 0)
  }
  t.equal(broker.upstream.serverNames.length, 1)
  t.equal(broker.upstream.sockets.size, 1)
  broker.broker.close()
  await waitUntil('the connection to the host is closed', () => broker.upstream.sockets.size === 0)
})

t.test('bodies, trailers and lengths pass in both directions', async (t) => {
  const broker = await startBroker(t, {
    async listener(request, response) {
      response.setHeader('Trailer', 'X-Sum, X-Token')
      for await (const chunk of request) response.write(chunk)
      response.addTrailers({ 'X-Sum': String(request.trailers['x-sum']), 'X-Token': VALUE })
      response.end(JSON.stringify(request.headers['content-length'] ?? null))
    },
  })
  const body = Buffer.alloc(300_000, 'x')
  const fixed = await send(broker, { method: 'POST', headers: { 'content-length': body.length }, body })
  t.equal(fixed.body.length, body.length + '"300000"'.length)
  t.equal(fixed.trailers['x-token'], STARS)
  const empty = await send(broker, { method: 'POST', headers: { 'content-length': 0 } })
  t.equal(empty.text, '"0"')
  const outgoing = createRequest({
    method: 'PUT',
    headers: { host: HOST, 'transfer-encoding': 'chunked', trailer: 'X-Sum' },
    createConnection: await broker.connect().then((socket) => () => socket),
  })
  outgoing.write('part')
  outgoing.addTrailers({ 'X-Sum': '42' })
  outgoing.end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  t.equal((await incoming.toArray()).join(''), 'partnull')
  t.equal(incoming.trailers['x-sum'], '42')
})

t.test('responses without a body keep their headers', async (t) => {
  const broker = await startBroker(t, {
    listener(request, response) {
      const status = Number(request.url?.slice(1))
      response.writeHead(status, { 'Content-Length': 123, 'Content-Encoding': 'gzip', ETag: '"1"' }).end()
    },
  })
  const head = await send(broker, { method: 'HEAD', path: '/200' })
  t.match(head, { statusCode: 200, headers: { 'content-length': '123', 'content-encoding': 'gzip' } })
  t.match(await send(broker, { path: '/304' }), { statusCode: 304, headers: { etag: '"1"' } })
  t.match(await send(broker, { path: '/204' }), { statusCode: 204, text: '' })
})

t.test('the host decides whether the client sends its body', async (t) => {
  const broker = await startBroker(t)
  broker.upstream.http.on('checkContinue', (request, response) => {
    if (request.url === '/no') return response.writeHead(413, { Connection: 'close' }).end('too large')
    response.writeContinue()
    request.pipe(response)
  })
  const start = async (path: string) =>
    createRequest({
      ...{
        method: 'POST',
        path,
        createConnection: await broker.connect().then((socket) => () => socket),
      },
      headers: { host: HOST, expect: '100-continue', 'content-length': 4 },
    })
  const accepted = await start('/yes')
  accepted.flushHeaders()
  await once(accepted, 'continue')
  accepted.end('body')
  const [echo] = (await once(accepted, 'response')) as [IncomingMessage]
  t.equal((await echo.toArray()).join(''), 'body')
  const refused = await start('/no')
  refused.flushHeaders()
  const [response] = (await once(refused, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 413)
  refused.on('error', () => undefined).destroy()
})

t.test('compressed bodies are decoded and masked; unknown codings are refused', async (t) => {
  const text = `{"token":"${VALUE}"}`
  const bodies: Record<string, Buffer> = {
    gzip: gzipSync(text),
    deflate: deflateSync(text),
    br: brotliCompressSync(text),
    'gzip, br': brotliCompressSync(gzipSync(text)),
    zstd: zstdCompressSync(text),
  }
  const broker = await startBroker(t, {
    listener(request, response) {
      const coding = decodeURIComponent(request.url ?? '').slice(1)
      response
        .writeHead(200, { 'Content-Encoding': coding, 'Content-Length': bodies[coding]?.length })
        .end(bodies[coding])
    },
  })
  for (const coding of ['gzip', 'deflate', 'br', 'gzip, br']) {
    const { headers, text } = await send(broker, { path: `/${encodeURIComponent(coding)}` })
    t.equal(text, `{"token":"${STARS}"}`, coding)
    t.same([headers['content-encoding'], headers['content-length']], [undefined, undefined], coding)
  }
  const refused = await send(broker, { path: '/zstd' })
  t.match(refused, { statusCode: 502, headers: { 'boxwood-broker-error': 'upstream_encoding' } })
})

t.test('what a server reflects outside of the body is masked', async (t) => {
  const broker = await startBroker(t, {
    listener(request, response) {
      const token = request.headers['x-api-key'] as string
      response.writeEarlyHints({ link: `</${VALUE.replace(/\W/g, '')}>; rel=preload` })
      response.writeHead(302, `Found ${token}`, {
        Location: `https://elsewhere.test/?token=${encodeURIComponent(token)}`,
        'Set-Cookie': [`a=${token}`, `b=${Buffer.from(token).toString('hex')}`],
        'WWW-Authenticate': `Basic realm="${token}"`,
        'X-Base64': Buffer.from(`key:${token}`).toString('base64'),
        'Alt-Svc': 'h3=":443"',
      })
      response.end()
    },
  })
  const { statusMessage, headers } = await send(broker, { headers: { 'x-api-key': PLACEHOLDER } })
  t.equal(statusMessage, `Found ${STARS}`)
  t.match(headers.location, /^https:\/\/elsewhere\.test\/\?token=\*+$/, 'not followed')
  t.same(
    headers['set-cookie']?.map((cookie) => cookie.replace(/\*+/, '*')),
    ['a=*', 'b=*'],
  )
  t.equal(headers['www-authenticate'], `Basic realm="${STARS}"`)
  t.match(headers['x-base64'], /^[^*]{6}\*{30,}[^*]{0,2}=*$/)
  t.equal(headers['alt-svc'], undefined)
  t.equal(broker.upstream.serverNames.length, 1)
})

t.test('events are not delayed', async (t) => {
  let push: (text: string) => void = () => undefined
  const broker = await startBroker(t, {
    listener(_, response) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      push = (text) => response.write(text)
      push('data: 1\n\n')
    },
  })
  const outgoing = createRequest({
    headers: { host: HOST },
    createConnection: await broker.connect().then((socket) => () => socket),
  }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  t.equal(String((await once(incoming, 'data'))[0]), 'data: 1\n\n')
  push('data: s\n\n')
  t.equal(String((await once(incoming, 'data'))[0]), 'data: s\n\n')
  outgoing.on('error', () => undefined).destroy()
  await waitUntil('the request to the host is closed', () => broker.upstream.sockets.size === 0)
})

t.test('a response that precedes the end of the request arrives', async (t) => {
  const broker = await startBroker(t, {
    listener: (_, response) => response.writeHead(401, { Connection: 'close' }).end('no'),
  })
  const outgoing = createRequest({
    method: 'POST',
    headers: { host: HOST, 'content-length': 10_000_000 },
    createConnection: await broker.connect().then((socket) => () => socket),
  })
  outgoing.on('error', () => undefined)
  outgoing.write(Buffer.alloc(100_000))
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  t.equal(incoming.statusCode, 401)
  t.equal((await incoming.toArray()).join(''), 'no')
  outgoing.destroy()
})

t.test('only the coordinator responds to the test request', async (t) => {
  const broker = await startBroker(t)
  const socket = await broker.connect({}, BROKER_TEST_HOST)
  t.equal((await send(broker, { socket, headers: { host: BROKER_TEST_HOST } })).statusCode, 204)
  const other = broker.server.addBox()
  await t.rejects(broker.openWebSocket(BROKER_TEST_HOST, other), { message: 'refused with 403' })
  t.equal(broker.upstream.serverNames.length, 0)
})

t.test('a stop lets requests in flight complete, and refuses new connections', async (t) => {
  const { promise: finish, resolve } = Promise.withResolvers<void>()
  const broker = await startBroker(t, {
    listener: (_, response) => void finish.then(() => response.end('complete')),
  })
  const requested = once(broker.upstream.http, 'request')
  const idle = await broker.connect()
  const response = send(broker)
  await requested
  broker.broker.beginStop()
  await waitUntil('the connection without a request is closed', () => idle.closed)
  await t.rejects(broker.openWebSocket(), { message: 'refused with 503' })
  const drained = broker.broker.drain()
  resolve()
  t.match(await response, { statusCode: 200, text: 'complete', headers: { connection: 'close' } })
  await drained
})

t.test('the metrics count connections and results', async (t) => {
  const broker = await startBroker(t)
  const socket = await broker.connect()
  t.equal(await countConnections(broker), 1)
  await send(broker, { socket })
  await send(broker, { headers: { host: 'other.test' } })
  socket.destroy()
  await waitUntil('the connections are closed', async () => (await countConnections(broker)) === 0)
  const results = await readMetric(broker, 'boxwood_broker_requests_total')
  t.same([results?.get('forwarded'), results?.get('refused')], [1, 1])
})
