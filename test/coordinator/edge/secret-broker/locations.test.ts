// Values in the query, the path and the body of requests: the host gets them, and the program sees only asterisks.
import { once } from 'node:events'
import { request as createRequest, type IncomingMessage, type RequestListener } from 'node:http'
import { pino } from 'pino'
import t from 'tap'
import { send } from '../../../support/broker/send.ts'
import { HOST, PLACEHOLDER, startBroker } from '../../../support/broker/start-broker.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const VALUE = '-----KEY-----\n"é\\+ &/\n-----END-----'
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }

type Seen = { url: string; headers: IncomingMessage['headers']; body: string }

/** The host sends back what it gets. */
async function start(
  t: Parameters<typeof startBroker>[0],
  locations: ('header' | 'query' | 'path' | 'body')[],
) {
  const seen: Seen[] = []
  const listener: RequestListener = async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    seen.push({ url: request.url ?? '', headers: request.headers, body })
    response.setHeader('X-Url', request.url ?? '')
    response.end(`${request.url} ${body}`)
  }
  const broker = await startBroker(t, { listener })
  broker.mount.value = VALUE
  broker.mount.in = locations
  return { broker, seen }
}

t.test('the query and the path', async (t) => {
  const { broker, seen } = await start(t, ['query', 'path'])
  const response = await send(broker, { path: `/bot${PLACEHOLDER}/me?key=${PLACEHOLDER}&a=1` })
  t.equal(
    seen[0]?.url,
    `/bot-----KEY-----%0A%22%C3%A9%5C+%20&%2F%0A-----END-----/me?key=${encodeURIComponent(VALUE)}&a=1`,
  )
  t.match(response.text, /^\/bot\*+\/me\?key=\*+&a=1 $/)
  t.match(response.headers['x-url'], /^\/bot\*+\/me\?key=\*+&a=1$/)
  t.same(broker.secrets.uses, [{ secretId: 'sec_1', boxId: broker.box.boxId, host: HOST }])
})

t.test('a form and JSON, with the length of the new body', async (t) => {
  const { broker, seen } = await start(t, ['body'])
  const form = `grant_type=client_credentials&client_secret=${PLACEHOLDER}`
  const json = JSON.stringify({ client_secret: PLACEHOLDER })
  for (const [headers, body] of [
    [FORM_TYPE, form],
    [JSON_TYPE, json],
    [{ 'content-type': 'application/vnd.api+json', expect: '100-continue' }, json],
  ] as const) {
    const response = await send(broker, {
      ...{ method: 'POST', path: '/token', body },
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    })
    t.match(response.text, /^\/token .*\*{40,}/)
    t.notMatch(response.text, 'KEY')
  }
  t.equal(new URLSearchParams(seen[0]?.body).get('client_secret'), VALUE)
  t.same(JSON.parse(seen[1]?.body ?? ''), { client_secret: VALUE })
  t.same(JSON.parse(seen[2]?.body ?? ''), { client_secret: VALUE })
  for (const { headers, body } of seen) {
    t.equal(headers['content-length'], String(Buffer.byteLength(body)))
    t.equal(headers.expect, undefined)
  }
  const chunked = await send(broker, {
    ...{ method: 'POST', body: json },
    headers: { ...JSON_TYPE, 'transfer-encoding': 'chunked' },
  })
  t.equal(chunked.statusCode, 200)
  t.same(JSON.parse(seen[3]?.body ?? ''), { client_secret: VALUE })
  t.equal(seen[3]?.headers['transfer-encoding'], undefined)
})

t.test('other bodies are streams, and do not change', async (t) => {
  const { broker, seen } = await start(t, ['body'])
  const json = JSON.stringify({ client_secret: PLACEHOLDER })
  const large = JSON.stringify({ client_secret: PLACEHOLDER, text: 'x'.repeat(100_000) })
  for (const [headers, body] of [
    [{ 'content-type': 'text/plain', 'content-length': json.length }, json],
    [{ ...JSON_TYPE, 'content-encoding': 'gzip', 'content-length': json.length }, json],
    [{ ...JSON_TYPE, 'content-length': large.length }, large],
    [{ ...JSON_TYPE, 'transfer-encoding': 'chunked' }, large],
  ] as const) {
    await send(broker, { method: 'POST', headers, body })
    t.equal(seen.at(-1)?.body, body)
  }
})

t.test('a body of which a part has arrived is sent when it is complete', async (t) => {
  const { broker, seen } = await start(t, ['body'])
  const json = JSON.stringify({ client_secret: PLACEHOLDER })
  const outgoing = createRequest({
    ...{ method: 'POST', headers: { host: HOST, ...JSON_TYPE, 'content-length': json.length } },
    createConnection: await broker.connect().then((socket) => () => socket),
  })
  outgoing.write(json.slice(0, 30))
  outgoing.end(json.slice(30))
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  incoming.resume()
  t.same(JSON.parse(seen[0]?.body ?? ''), { client_secret: VALUE })
})

t.test('a location that is not allowed is refused, and nothing is sent', async (t) => {
  const { broker, seen } = await start(t, ['header'])
  const refused = { statusCode: 403, headers: { 'boxwood-broker-error': 'location_not_allowed' } }
  const post = { method: 'POST', headers: { ...FORM_TYPE, 'content-length': PLACEHOLDER.length + 2 } }
  for (const options of [
    { path: `/?key=${PLACEHOLDER}` },
    { path: `/bot${PLACEHOLDER}/` },
    { ...post, body: `a=${PLACEHOLDER}` },
  ])
    t.match(await send(broker, options), refused)
  t.match(await send(broker, { headers: { authorization: `Bearer ${PLACEHOLDER}` } }), {
    statusCode: 400,
    headers: { 'boxwood-broker-error': 'value_has_lines' },
  })
  t.equal(seen.length, 0)
  t.same(broker.secrets.uses, [])
  const basic = Buffer.from(`me:${PLACEHOLDER}`).toString('base64')
  t.equal((await send(broker, { headers: { authorization: `Basic ${basic}` } })).statusCode, 200)
  t.equal(seen[0]?.headers.authorization, `Basic ${Buffer.from(`me:${VALUE}`).toString('base64')}`)
})

t.test('a program that disconnects within a small body is no error of the coordinator', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const broker = await startBroker(t, { log })
  const socket = await broker.connect()
  const head = `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/json\r\nContent-Length: 100`
  socket.end(`${head}\r\n\r\n{`)
  const connections = broker.broker.metrics.find(({ name }) => name === 'boxwood_broker_connections')
  await waitUntil('the connection is closed', async () => (await connections?.collect())?.get('') === 0)
  t.equal((await send(broker)).statusCode, 200)
  t.match(
    lines.map((line) => JSON.parse(line)),
    [{ method: 'GET', status: 200 }],
  )
})
