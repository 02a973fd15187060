// Programs whose HTTP is not exact: what RFC 9112 lets a recipient accept reaches the viewer as exact HTTP, all else is refused.
import t from 'tap'
import { HeaderNormalizer } from '../../../../coordinator/edge/shared-ports/proxy/header-normalizer.ts'
import { startBytes } from './byte-program.ts'

/** The response of the program, and what the viewer gets, without Date and Connection. */
const ACCEPTED: [name: string, response: string, status: string, headers: string[], body: string][] = [
  ['LF only', 'HTTP/1.1 200 OK\n\nhi\n', '200 OK', [], 'hi\n'],
  ['LF and headers', 'HTTP/1.0 200 OK\nX-A: b\nContent-Length: 2\n\nhi', '200 OK', ['X-A: b'], 'hi'],
  ['CR LF, then LF', 'HTTP/1.1 200 OK\r\nX-A: b\nX-B: c\r\n\nhi', '200 OK', ['X-A: b', 'X-B: c'], 'hi'],
  ['LF, then CR LF', 'HTTP/1.1 404 Not Found\nX-A: b\n\r\nno', '404 Not Found', ['X-A: b'], 'no'],
  [
    'space before a colon',
    'HTTP/1.1 200 OK\r\nX-A : b\r\nX-B\t :c\r\n\r\nhi',
    '200 OK',
    ['X-A: b', 'X-B: c'],
    'hi',
  ],
  [
    'space before the colon of a length',
    'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi',
    '200 OK',
    [],
    'hi',
  ],
  ['an empty line first', '\nHTTP/1.1 200 OK\n\nhi', '200 OK', [], 'hi'],
  ['an informational response', 'HTTP/1.1 102 Processing\n\nHTTP/1.1 200 OK\n\nhi', '200 OK', [], 'hi'],
  ['no status message', 'HTTP/1.1 200\n\nhi', '200', [], 'hi'],
  [
    'a body with LF and colons',
    'HTTP/1.1 200 OK\r\n\r\nX-A : b\n\nHTTP/1.1 1\n',
    '200 OK',
    [],
    'X-A : b\n\nHTTP/1.1 1\n',
  ],
  [
    'chunks after LF',
    'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\r\nhi\r\n0\r\n\r\n',
    '200 OK',
    [],
    'hi',
  ],
]

for (const [name, bytes, status, headers, body] of ACCEPTED)
  t.test(`accepted: ${name}`, async (t) => {
    for (const isEarly of [false, true]) {
      const { open } = await startBytes(t, (socket) => socket.end(bytes, 'latin1'), { isEarly })
      const received = (await open()).replace(/^HTTP\/1\.1 102 Processing\r\n\r\n/, '')
      const [head = '', ...rest] = received.split('\r\n\r\n')
      const lines = head.split('\r\n')
      t.equal(lines[0]?.trimEnd(), `HTTP/1.1 ${status}`)
      for (const header of headers) t.ok(lines.includes(header), `${header} of ${head}`)
      t.notMatch(head.replaceAll('\r\n', ''), /[\r\n]/)
      t.notMatch(head, /[ \t]:/)
      const isChunked = /^transfer-encoding: chunked$/im.test(head)
      const content = rest.join('\r\n\r\n')
      t.equal(isChunked ? content.replace(/^[0-9a-f]+\r\n([\s\S]*?)\r\n0(\r\n)*$/, '$1') : content, body)
    }
  })

const REFUSED: [name: string, response: string, code: string][] = [
  [
    'a length and chunks',
    'HTTP/1.1 200 OK\nContent-Length: 3\nTransfer-Encoding: chunked\n\n0\r\n\r\n',
    'HPE_INVALID_TRANSFER_ENCODING',
  ],
  [
    'chunks and a length',
    'HTTP/1.1 200 OK\nTransfer-Encoding : chunked\nContent-Length : 3\n\n0\r\n\r\n',
    'HPE_INVALID_CONTENT_LENGTH',
  ],
  [
    'two lengths',
    'HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length : 3\n\nhi!',
    'HPE_UNEXPECTED_CONTENT_LENGTH',
  ],
  ['a list of lengths', 'HTTP/1.1 200 OK\nContent-Length: 2, 3\n\nhi!', 'HPE_INVALID_CONTENT_LENGTH'],
  ['a length with a sign', 'HTTP/1.1 200 OK\nContent-Length: +2\n\nhi', 'HPE_INVALID_CONTENT_LENGTH'],
  ['a folded header', 'HTTP/1.1 200 OK\nX-A: b\n c\n\nhi', 'HPE_INVALID_HEADER_TOKEN'],
  ['a folded header with CR LF', 'HTTP/1.1 200 OK\r\nX-A: b\r\n\tc\r\n\r\nhi', 'HPE_INVALID_HEADER_TOKEN'],
  ['a space before the first header', 'HTTP/1.1 200 OK\n X-A: b\n\nhi', 'HPE_UNEXPECTED_SPACE'],
  ['CR in a header', 'HTTP/1.1 200 OK\nX-A: b\rSet-Cookie: c=1\n\nhi', 'HPE_LF_EXPECTED'],
  ['CR CR LF', 'HTTP/1.1 200 OK\nX-A: b\r\r\n\nhi', 'HPE_LF_EXPECTED'],
  ['NUL in a header', 'HTTP/1.1 200 OK\nX-A: b\0c\n\nhi', 'HPE_INVALID_HEADER_TOKEN'],
  ['a header without a name', 'HTTP/1.1 200 OK\n : b\n\nhi', 'HPE_UNEXPECTED_SPACE'],
  ['a header without a colon', 'HTTP/1.1 200 OK\nX-A\n\nhi', 'HPE_INVALID_HEADER_TOKEN'],
  ['a space in a name', 'HTTP/1.1 200 OK\nX A: b\n\nhi', 'HPE_INVALID_HEADER_TOKEN'],
  ['chunks with LF', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhi\n0\n\n', ''],
  ['another protocol', 'ICY 200 OK\n\nhi', 'HPE_INVALID_CONSTANT'],
  ['HTTP/0.9', '<h1>hi</h1>\n', 'HPE_INVALID_CONSTANT'],
  ['another version', 'HTTP/3.7 200 OK\n\nhi', 'HPE_INVALID_VERSION'],
  ['large headers', `HTTP/1.1 200 OK\nX-A: ${'a'.repeat(70_000)}\n\nhi`, 'HPE_HEADER_OVERFLOW'],
  ['a line without end', `HTTP/1.1 200 OK\nX-A: ${'a'.repeat(200_000)}`, 'HPE_HEADER_OVERFLOW'],
]

for (const [name, bytes, code] of REFUSED)
  t.test(`refused: ${name}`, async (t) => {
    const { open } = await startBytes(t, (socket) => socket.end(bytes, 'latin1'))
    const received = await open()
    // The headers of the response were sent before the error.
    if (code === '') return t.notMatch(received, /0\r\n\r\n$/, 'the viewer sees that the body is incomplete')
    t.match(received, /^HTTP\/1\.1 502 /)
    t.match(received, `(${code})`)
    t.notMatch(received, /set-cookie/i)
  })

t.test('a connection is not used again after a response that was corrected', async (t) => {
  const exact = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'
  const inexact = 'HTTP/1.1 200 OK\nContent-Length: 2\n\nhi'
  const { open, connections } = await startBytes(t, (socket, requests) =>
    socket.write(requests === 3 ? inexact : exact),
  )
  const counts = []
  for (let count = 0; count < 5; count++) {
    t.match(await open(), /\r\n\r\nhi$/)
    counts.push(connections())
  }
  t.same(counts, [1, 1, 1, 2, 2], 'the third response, on a reused connection, was corrected')
})

t.test('a response to HEAD has no body', async (t) => {
  const { open } = await startBytes(t, (socket) => socket.end('HTTP/1.1 200 OK\nContent-Length: 2\n\n'))
  t.match(await open('HEAD'), /^HTTP\/1\.1 200 OK\r\n[\s\S]*content-length: 2\r\n[\s\S]*\r\n\r\n$/i)
})

t.test('the result does not depend on how the bytes are split', async (t) => {
  const input = Buffer.from(
    'HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\r\nX-A : b\nX: \xff\r\n\nbody\nX : y\n',
    'latin1',
  )
  const expected = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\nX: \xff\r\n\r\nbody\nX : y\n'
  for (let size = 1; size <= input.length; size++) {
    const normalizer = new HeaderNormalizer(1000)
    let output = ''
    for (let start = 0; start < input.length; start += size)
      output += normalizer.write(input.subarray(start, start + size)).toString('latin1')
    t.equal(output + normalizer.end().toString('latin1'), expected, `chunks of ${size} bytes`)
    t.equal(normalizer.hasChanged, true)
  }
})

t.test('exact headers are not changed', async (t) => {
  const input = Buffer.from('HTTP/1.1 200 OK\r\nX-A: b : c\r\nDate: 1:2\r\n\r\nbody\n')
  const normalizer = new HeaderNormalizer(1000)
  t.same(normalizer.write(input), input)
  t.equal(normalizer.hasChanged, false)
})
