// Attempts of a program on a box, or of a host, to get a value or to reach what it may not.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect as connectTls } from 'node:tls'
import { pino } from 'pino'
import t from 'tap'
import { MAX_IN_FLIGHT } from '../../../../coordinator/edge/secret-broker/request-limits.ts'
import { createTestAuthority } from '../../../support/broker/authority.ts'
import { sendRaw } from '../../../support/broker/raw.ts'
import { send } from '../../../support/broker/send.ts'
import {
  HOST,
  PLACEHOLDER,
  startBroker,
  type TestBroker,
  VALUE,
} from '../../../support/broker/start-broker.ts'
import { SLOWDOWN, waitUntil } from '../../../support/wait-until.ts'

const OTHER = 'other.example.test'
const headers = { authorization: `Bearer ${PLACEHOLDER}` }

/** Counts the requests that reach the host. */
function countRequests({ upstream }: TestBroker): () => number {
  let count = 0
  upstream.http.on('request', () => {
    count += 1
  })
  return () => count
}

const isConnected = (broker: TestBroker) => broker.upstream.serverNames.length > 0

t.test(
  'a host without a mount, and what is not a host name, is refused before anything is dialled',
  async (t) => {
    let lookups = 0
    const broker = await startBroker(t, {
      async resolve() {
        lookups += 1
        return ['127.0.0.1']
      },
    })
    broker.secrets.mount(broker.box.boxId, {
      secretId: 'sec_w',
      placeholder: 'p',
      value: VALUE,
      hosts: ['*.example.org', '*.1'],
    })
    for (const host of [
      ...[
        OTHER,
        'example.test',
        `x.${HOST}`,
        `${HOST}.evil.test`,
        'api.example.test.',
        'API.EXAMPLE.TEST',
        `${HOST}:443`,
      ],
      ...[
        '127.0.0.1',
        '[::1]',
        '2130706433',
        '127.1',
        '0x7f.1',
        '10.0.0.1',
        `${HOST}%00`,
        `${HOST}/x`,
        `${HOST}?x`,
        `u@${HOST}`,
      ],
      ...['example.org', '.example.org', 'a..example.org', 'aexample.org', 'xn--.1', 'é.example.org', ''],
    ])
      await t.rejects(
        broker.openWebSocket(host),
        { message: /refused with 403|Unexpected|Invalid URL/ },
        host,
      )
    t.equal(lookups, 0)
    for (const host of ['a.example.org', 'a.b.example.org', 'xn--bcher-kva.example.org'])
      await t.resolves(
        broker.openWebSocket(host).then((ws) => ws.terminate()),
        host,
      )
  },
)

t.test('another box, a wrong token and a box without a mount are refused', async (t) => {
  const broker = await startBroker(t)
  const other = broker.server.addBox()
  await t.rejects(broker.openWebSocket(HOST, other), { message: 'refused with 403' })
  await t.rejects(broker.openWebSocket(HOST, { ...broker.box, token: other.token }), {
    message: 'refused with 401',
  })
})

t.test('the server name of TLS must be the host of the connection', async (t) => {
  const broker = await startBroker(t)
  for (const servername of [OTHER, '', `x.${HOST}`]) {
    const stream = await broker.openStream()
    const socket = connectTls({ socket: stream, servername, rejectUnauthorized: false })
    const [error] = await once(socket, 'error')
    t.match(error, { code: /^(ERR_SSL_|ECONNRESET)/ }, servername || 'no server name')
  }
  const plain = await broker.openStream()
  t.notMatch(await sendRaw(plain, `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`), 'HTTP/1.1 200', 'plain HTTP')
  t.equal(isConnected(broker), false)
})

t.test('the header Host must be the host of the connection, in each request', async (t) => {
  const broker = await startBroker(t)
  const countForwarded = countRequests(broker)
  for (const hosts of [
    [`Host: ${OTHER}`],
    [`Host: ${HOST}`, `Host: ${OTHER}`],
    [`Host: ${OTHER}`, `host: ${HOST}`],
    [`Host: ${HOST}:8443`],
    [`Host: ${HOST}.`],
    ['X-Host: none'],
  ]) {
    const response = await sendRaw(await broker.connect(), `GET / HTTP/1.1\r\n${hosts.join('\r\n')}\r\n\r\n`)
    t.match(response, /^HTTP\/1.1 421 [\s\S]*boxwood-broker-error: wrong_host/, hosts.join(', '))
  }
  t.equal(countForwarded(), 0)
  const socket = await broker.connect()
  t.match(await sendRaw(socket, `GET / HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`, '\r\n\r\n'), /^HTTP\/1.1 200/)
  t.match(
    await sendRaw(socket, `GET / HTTP/1.1\r\nHost: ${OTHER}\r\n\r\n`),
    /^HTTP\/1.1 421/,
    'a kept connection',
  )
  t.equal(countForwarded(), 1)
})

t.test('requests that servers could interpret differently are refused', async (t) => {
  const broker = await startBroker(t)
  const countForwarded = countRequests(broker)
  const host = `Host: ${HOST}\r\n`
  for (const [name, text] of Object.entries({
    'CL and TE': `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two CL': `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
    'two TE': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'another TE': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    'TE with a space before the colon': `POST / HTTP/1.1\r\n${host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    'a folded header': `GET / HTTP/1.1\r\n${host}X-A: 1\r\n folded\r\n\r\n`,
    'a bare LF': `GET / HTTP/1.1\n${host}\n`,
    'a CR in a value': `GET / HTTP/1.1\r\n${host}X-A: 1\rX-B: 2\r\n\r\n`,
    'an absolute target': `GET https://${OTHER}/ HTTP/1.1\r\n${host}\r\n`,
    'an authority as target': `CONNECT ${OTHER}:443 HTTP/1.1\r\n${host}\r\n`,
    'an asterisk': `OPTIONS * HTTP/1.1\r\n${host}\r\n`,
    TRACE: `TRACE / HTTP/1.1\r\n${host}\r\n`,
    'no HTTP': 'SSH-2.0-x\r\n\r\n',
    'large headers': `GET / HTTP/1.1\r\n${host}X-A: ${'x'.repeat(40_000)}\r\n\r\n`,
  })) {
    const response = await sendRaw(await broker.connect(), text)
    t.match(response, /^(HTTP\/1\.1 4\d\d |$)/, name)
    t.notMatch(response, 'HTTP/1.1 200', name)
  }
  t.equal(countForwarded(), 0)
})

t.test('an upgrade request with a body is forwarded as another request, with its body', async (t) => {
  const broker = await startBroker(t, {
    async listener(request, response) {
      const body = (await request.toArray()).join('')
      response.end(`[${request.headers.upgrade} ${body}]`)
    },
  })
  const upgrade = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
  for (const body of [
    'Content-Length: 5\r\n\r\nhello',
    'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  ])
    t.match(await sendRaw(await broker.connect(), upgrade + body, ']'), '[undefined hello]')
})

t.test('an upgrade request before the response to an earlier request ends the connection', async (t) => {
  const broker = await startBroker(t, { listener: () => undefined })
  const get = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n`
  const upgrade = `${get}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
  t.equal(await sendRaw(await broker.connect(), `${get}\r\n${upgrade}`), '')
})

t.test('headers that arrive too slowly end the connection', async (t) => {
  const broker = await startBroker(t, { headersTimeoutMs: 300 * SLOWDOWN })
  const response = await sendRaw(await broker.connect(), `GET / HTTP/1.1\r\nHost: ${HOST}\r\nX-A: `)
  t.match(response, /^HTTP\/1.1 408 /)
  const stream = await broker.openStream()
  stream.resume()
  await waitUntil('the stream is closed', () => stream.closed)
  t.pass('a program that does not send a handshake is disconnected')
})

t.test('more requests without a response than a client needs end the connection', async (t) => {
  const broker = await startBroker(t, { listener: () => undefined })
  const get = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`
  t.equal(await sendRaw(await broker.connect(), get.repeat(3)), '')
})

t.test('a box has a limited number of requests without a response', async (t) => {
  const pending: ServerResponse[] = []
  const broker = await startBroker(t, { listener: (_, response) => void pending.push(response) })
  const first = send(broker)
  const others = Array.from({ length: MAX_IN_FLIGHT.perHost - 1 }, async () => send(broker))
  await waitUntil('the host has all requests', () => pending.length === MAX_IN_FLIGHT.perHost)
  const refused = {
    statusCode: 429,
    headers: { 'boxwood-broker-error': 'too_many_requests', 'retry-after': '1' },
  }
  t.match(await send(broker), refused)
  pending[0]?.end('complete')
  pending.shift()
  t.equal((await first).text, 'complete')
  const next = send(broker)
  await waitUntil('the next request is forwarded', () => pending.length === MAX_IN_FLIGHT.perHost)
  for (const response of pending) response.end()
  await Promise.all([...others, next])
})

t.test('requests with the same values share what is made of them', async (t) => {
  const broker = await startBroker(t, {
    listener: (request, response) => response.end(String(request.headers.authorization)),
  })
  const other = broker.server.addBox()
  broker.secrets.mount(other.boxId, { ...broker.mount })
  const stars = (text: string) => `Bearer ${'*'.repeat(text.length)}`
  for (let count = 0; count < 3; count += 1) t.equal((await send(broker, { headers })).text, stars(VALUE))
  const ofOther = await send(broker, { headers, socket: await broker.connect({}, HOST, other) })
  t.equal(ofOther.text, stars(VALUE))
  t.equal(broker.secrets.opened, 1)
  broker.mount.value = 'another-value'
  t.equal((await send(broker, { headers })).text, stars('another-value'), 'a new value')
  broker.mount.value = VALUE
  t.equal((await send(broker, { headers })).text, stars(VALUE))
  t.equal(broker.secrets.opened, 2)
})

t.test('only placeholders of mounts of this box that cover the host are replaced', async (t) => {
  const broker = await startBroker(t, {
    listener: (request, response) => response.end(String(request.headers['x-key'])),
  })
  const { secrets, box, server } = broker
  const placeholders = ['1', '2', '3'].map((char) => `dcpsec_${char.repeat(32)}`)
  const [ofOtherHost = '', ofOtherBox = '', withoutHosts = ''] = placeholders
  secrets.mount(box.boxId, {
    secretId: 'sec_2',
    placeholder: ofOtherHost,
    value: 'value-of-other-host',
    hosts: [OTHER],
  })
  secrets.mount(server.addBox().boxId, {
    secretId: 'sec_3',
    placeholder: ofOtherBox,
    value: 'value-of-other-box',
    hosts: [HOST],
  })
  secrets.mount(box.boxId, {
    secretId: 'sec_4',
    placeholder: withoutHosts,
    value: 'value-without-hosts',
    hosts: [],
  })
  t.equal((await send(broker, { headers: { 'x-key': placeholders.join(' ') } })).text, placeholders.join(' '))
  t.same(secrets.uses, [])
})

t.test('placeholders in a text of the body, in names and in skipped headers are not replaced', async (t) => {
  const broker = await startBroker(t, {
    async listener(request, response) {
      const body = (await request.toArray()).join('')
      response.end(JSON.stringify([request.url, Object.keys(request.headers), body]))
    },
  })
  const { text } = await send(broker, {
    ...{ method: 'POST', path: `/?${PLACEHOLDER}=a`, body: PLACEHOLDER },
    headers: { [`x-${PLACEHOLDER}`]: '1', 'content-length': PLACEHOLDER.length },
  })
  t.equal(text.split(PLACEHOLDER).length, 4)
  t.notMatch(text, '****')
})

t.test('a name with an address that is not public is refused, also after it was public', async (t) => {
  let addresses = ['93.184.215.14', '10.0.0.1']
  const broker = await startBroker(t, { resolve: async () => addresses })
  const refused = { statusCode: 403, headers: { 'boxwood-broker-error': 'address_refused' } }
  for (const list of [
    addresses,
    ['127.0.0.2'],
    ['::1'],
    ['169.254.169.254'],
    ['::ffff:10.0.0.1'],
    ['64:ff9b::a00:1'],
  ]) {
    addresses = list
    t.match(await send(broker, { headers }), refused, list.join())
  }
  addresses = ['127.0.0.1']
  const socket = await broker.connect()
  t.equal((await send(broker, { socket, headers })).statusCode, 200)
  for (const upstreamSocket of broker.upstream.sockets) upstreamSocket.destroy()
  addresses = ['127.0.0.2']
  t.match(await send(broker, { headers }), refused, 'rebinding')
  t.same(broker.upstream.serverNames, [HOST])
  t.equal(broker.secrets.uses.length, 1, 'refused requests are not uses')
})

t.test('each connection uses the result of one lookup', async (t) => {
  const results = [['127.0.0.1'], ['127.0.0.2']]
  const broker = await startBroker(t, { resolve: async () => results.shift() ?? [] })
  t.equal((await send(broker, { headers })).statusCode, 200)
  t.equal(results.length, 1)
})

t.test('a host whose certificate is not trusted, or is not for its name, gets nothing', async (t) => {
  const broker = await startBroker(t, { ca: createTestAuthority('Other').certificate })
  const countForwarded = countRequests(broker)
  const response = await send(broker, { headers })
  t.match(response, { statusCode: 502, headers: { 'boxwood-broker-error': 'upstream_certificate' } })
  t.match(response.text, /certificate of api\.example\.test/)
  t.same([countForwarded(), broker.secrets.uses.length], [0, 0])
  const wrongName = await startBroker(t)
  const { authority } = wrongName.upstream
  const getLeaf = authority.getLeaf
  authority.getLeaf = () => getLeaf(OTHER)
  t.match(await send(wrongName, { headers }), {
    statusCode: 502,
    headers: { 'boxwood-broker-error': 'upstream_certificate' },
  })
})

t.test(
  'a host that closes, sends no HTTP or resolves to nothing is reported without its content',
  async (t) => {
    const broker = await startBroker(t, {
      listener: ({ socket, headers }) => void socket.end(`${headers.authorization} is not HTTP\r\n\r\n`),
    })
    const invalid = await send(broker, { headers })
    t.match(invalid, { statusCode: 502, headers: { 'boxwood-broker-error': 'upstream_invalid' } })
    t.notMatch(invalid.text, VALUE)
    broker.upstream.serve(({ socket }) => void socket.destroy())
    t.match(await send(broker, { headers }), {
      statusCode: 502,
      headers: { 'boxwood-broker-error': 'upstream_unreachable' },
    })
    const unresolved = await startBroker(t, {
      resolve: () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })),
    })
    t.match((await send(unresolved, { headers })).text, /ENOTFOUND/)
  },
)

t.test('a value that cannot be sent in a header is not sent, and not shown', async (t) => {
  const broker = await startBroker(t)
  broker.mount.value = 'secret\u0001value'
  const response = await send(broker, { headers })
  t.match(response, { statusCode: 502, headers: { 'boxwood-broker-error': 'upstream_invalid' } })
  t.notMatch(response.text, 'secret')
})

t.test(
  'placeholders do not make headers, or the search of responses, larger than servers accept',
  async (t) => {
    const broker = await startBroker(t)
    const countForwarded = countRequests(broker)
    const refused = { statusCode: 431, headers: { 'boxwood-broker-error': 'headers_too_large' } }
    broker.mount.value = 'v'.repeat(16 * 1024)
    t.match(await send(broker, { headers: { 'x-a': PLACEHOLDER.repeat(100) } }), refused)
    t.equal(countForwarded(), 0)
    const basic = `Basic ${Buffer.from(PLACEHOLDER.repeat(2)).toString('base64')}`
    t.match(await send(broker, { headers: { authorization: basic } }), refused, 'Basic credentials')
    for (const name of ['a', 'b', 'c', 'd'])
      broker.secrets.mount(broker.box.boxId, {
        ...{ secretId: `sec_${name}`, placeholder: `dcpsec_${name}`, hosts: [HOST] },
        value: `${name}ÿé漢<&>/ `.repeat(1000),
      })
    t.match(await send(broker, { headers }), refused, 'many large secrets')
    const { opened } = broker.secrets
    t.match(await send(broker, { headers }), refused, 'again')
    t.equal(broker.secrets.opened, opened, 'nothing is decrypted again')
    t.equal(countForwarded(), 0)
  },
)

t.test('an echo is masked wherever the host splits it', async (t) => {
  const broker = await startBroker(t, {
    async listener(request, response) {
      const [form = '', at = 0] = JSON.parse(decodeURIComponent(request.url ?? '').slice(1)) as [
        string,
        number,
      ]
      response.setHeader('Content-Length', form.length + 3)
      response.write(`"${form.slice(0, at)}`)
      await new Promise(setImmediate)
      response.end(`${form.slice(at)}"\n`)
    },
  })
  const socket = await broker.connect()
  for (const form of [VALUE, Buffer.from(`u:${VALUE}`).toString('base64'), encodeURIComponent(VALUE)]) {
    const results = new Set<string | undefined>()
    for (let at = 0; at <= form.length; at += 1) {
      const path = encodeURIComponent(JSON.stringify([form, at]))
      const response = await sendRaw(socket, `GET /${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, '"\n')
      results.add(/"(.*)"\n$/.exec(response)?.[1])
    }
    const [result, ...others] = results
    t.match(result, /^[^*]{0,3}\*{20,}[^*]{0,1}=*$/)
    t.same(others, [])
  }
})

t.test('the log has the box, the host and the status, and never a value or a placeholder', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const broker = await startBroker(t, { log, listener: (_, response) => response.end(VALUE) })
  broker.mount.in = ['header', 'query']
  await send(broker, { headers, path: `/?key=${PLACEHOLDER}` })
  await sendRaw(await broker.connect(), `GET / HTTP/1.1\r\nHost: ${PLACEHOLDER}\r\n\r\n`)
  broker.upstream.serve(({ socket, headers }) => void socket.end(`${headers.authorization}\r\n\r\n`))
  await send(broker, { headers })
  const open = await broker.connect()
  broker.secrets.find = () => Promise.reject(new Error('the database is not reachable'))
  t.match(
    await sendRaw(open, `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`),
    /^HTTP\/1\.1 503 [\s\S]*boxwood-broker-error: broker_unavailable/i,
  )
  t.match(
    lines.map((line) => JSON.parse(line)),
    [
      { boxId: broker.box.boxId, host: HOST, method: 'GET', status: 200 },
      { status: 421, code: 'wrong_host' },
      { status: 502, code: 'upstream_invalid' },
      { status: 503, code: 'broker_unavailable' },
    ],
  )
  t.notMatch(lines.join(''), VALUE)
  t.notMatch(lines.join(''), 'dcpsec_')
})

t.test('at most 512 connections of a box are open', async (t) => {
  const broker = await startBroker(t)
  const open = await Promise.all(Array.from({ length: 512 }, () => broker.openWebSocket()))
  await t.rejects(broker.openWebSocket(), { message: 'refused with 429' })
  open[0]?.terminate()
  await waitUntil('a connection can be opened', () =>
    broker.openWebSocket().then(
      () => true,
      () => false,
    ),
  )
  broker.server.tunnels.disconnect(broker.box.boxId, 'the token is not valid')
  await Promise.all(
    open.map((ws) =>
      ws.readyState === ws.CLOSED
        ? undefined
        : once(
            ws.on('error', () => undefined),
            'close',
          ),
    ),
  )
  t.pass('a disconnect of the box closes its connections')
})
