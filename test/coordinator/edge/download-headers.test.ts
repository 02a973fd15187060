// Downloads of a box whose agent sends headers that the client's request does not allow.
import t from 'tap'
import { DIAL_BACK_HEADER } from '../../../shared/protocol.ts'
import { createFakeTransfers, startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'

const FILE = { 'x-service-path': '/home/a', 'content-length': '3', etag: '"1"' }
const PART = { ...FILE, 'content-range': 'bytes 0-2/10' }

async function startBox(t: Parameters<typeof startBoxWithFakeAgent>[0]) {
  const response = { status: 200, headers: {} as Record<string, string> }
  const received: Record<string, string>[] = []
  const { edge, box } = await startBoxWithFakeAgent(
    t,
    async ({ headers = {} }) => {
      received.push(headers)
      const { status } = response
      const hasContent = headers[DIAL_BACK_HEADER] !== undefined && (status === 200 || status === 206)
      return { status: 200, body: Buffer.from(hasContent ? '' : JSON.stringify(response)) }
    },
    { transfers: createFakeTransfers(() => ({ headers: response.headers, text: 'abc' })) },
  )
  const download = (headers: Record<string, string> = {}, method = 'GET') =>
    edge(box.hostname, method, '/download?path=a', undefined, { headers })
  return { response, received, download }
}

t.test('forwards the conditions of the client, and the headers of a valid response', async (t) => {
  const { response, received, download } = await startBox(t)
  Object.assign(response, { status: 206, headers: { ...PART, 'set-cookie': 'a=b' } })
  const conditions = { range: 'bytes=0-2', 'if-range': '"1"', 'if-none-match': '"0"' }
  const { status, text, headers } = await download({ ...conditions, 'if-match': '"1"' })
  t.equal(status, 206)
  t.equal(text, 'abc')
  t.match(Object.fromEntries(headers), {
    etag: '"1"',
    'content-range': 'bytes 0-2/10',
    'content-length': '3',
  })
  t.equal(headers.get('set-cookie'), null)
  t.match(received[0], conditions)
  t.notOk(received[0]?.['if-match'])
  await download({ range: `bytes=${'0'.repeat(2000)}-` })
  t.notOk(received[1]?.range, 'a long header is not forwarded')
})

t.test('forwards mode, time and counts, and drops malformed ones', async (t) => {
  const { response, download } = await startBox(t)
  const valid = { 'x-service-mode': '0750', 'x-service-mtime': '1500000000.25' }
  Object.assign(response, { headers: { ...FILE, ...valid, 'x-service-files': '1' } })
  const { headers } = await download()
  t.match(Object.fromEntries(headers), valid)
  t.equal(headers.get('x-service-files'), null, 'a file has no counts')
  const invalid = { 'x-service-mode': '99', 'x-service-mtime': '-1', 'x-service-skipped': 'x' }
  const counts = { 'x-service-files': '2', 'x-service-bytes': '30' }
  Object.assign(response, { headers: { ...FILE, ...counts, ...invalid, 'x-service-content': 'directory' } })
  const directory = (await download({}, 'HEAD')).headers
  t.match(Object.fromEntries(directory), counts)
  for (const name of Object.keys(invalid)) t.equal(directory.get(name), null, name)
})

t.test('rejects headers that do not fit the request', async (t) => {
  const { response, download } = await startBox(t)
  const range = { range: 'bytes=0-2' }
  for (const [name, status, headers, conditions] of [
    ['a range that was not requested', 206, PART, {}],
    ['a range of another length', 206, { ...PART, 'content-range': 'bytes 0-3/10' }, range],
    ['a range outside the file', 206, { ...PART, 'content-range': 'bytes 8-10/10' }, range],
    ['a malformed range', 206, { ...PART, 'content-range': 'bytes 0-2/*' }, range],
    ['a malformed entity tag', 200, { ...FILE, etag: 'a b' }, {}],
    ['no length', 200, { 'x-service-path': '/home/a' }, {}],
    ['not modified without a condition', 304, FILE, {}],
    ['an unknown status', 299, FILE, {}],
  ] as const) {
    Object.assign(response, { status, headers })
    for (const method of ['GET', 'HEAD'])
      t.equal((await download(conditions, method)).status, 502, `${method}: ${name}`)
  }
})

t.test('rejects a head without a content, and the head of an error', async (t) => {
  const bodies = ['{}', 'x', '[]', JSON.stringify({ status: 200, headers: FILE })]
  let body = ''
  const { edge, box } = await startBoxWithFakeAgent(t, async () => ({ status: 200, body: Buffer.from(body) }))
  for (body of bodies)
    t.match(await edge(box.hostname, 'GET', '/download?path=a'), {
      status: 502,
      json: { error: { code: 'exec_failed' } },
    })
})

t.test('a range that is not satisfiable has the size of the file', async (t) => {
  const error = { code: 'range_not_satisfiable', message: 'The file has only 3 bytes.' }
  let size: unknown = 3
  const { edge, box } = await startBoxWithFakeAgent(t, async () => ({
    status: 416,
    body: Buffer.from(JSON.stringify({ ok: false, error: { ...error, size } })),
  }))
  for (const [value, expected] of [
    [3, 'bytes */3'],
    ['3', null],
    [1.5, null],
    [undefined, null],
  ] as const) {
    size = value
    const { status, headers, json } = await edge(box.hostname, 'GET', '/download?path=a')
    t.equal(status, 416)
    t.equal(headers.get('content-range'), expected)
    t.same(json.error, error)
  }
})
