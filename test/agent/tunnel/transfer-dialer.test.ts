// Fetching a body over a dial-back connection: chunking, back-pressure, invalid responses, resets.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createTransferDialer } from '../../../agent/tunnel/transfer-dialer.ts'

/** Starts a TCP server that calls `respond` after the first bytes of a request. Returns its URL. */
async function startServer(t: Test, respond: (socket: Socket) => void): Promise<string> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => respond(socket))
    t.after(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}

const startFetch = (url: string, length: number | null) =>
  createTransferDialer({ boxId: 'box', readUrl: async () => url, readToken: async () => 'token' }).fetch(
    'id',
    length,
  )

async function fetchAll(url: string, length: number | null): Promise<Buffer> {
  const { chunks, release } = await startFetch(url, length)
  const copies: Buffer[] = []
  try {
    for await (const chunk of chunks) {
      copies.push(Buffer.from(chunk))
      // A chunk must not change while the consumer uses it, although reading continues.
      const before = createHash('sha1').update(chunk).digest('hex')
      await setImmediate()
      if (createHash('sha1').update(chunk).digest('hex') !== before) throw new Error('a chunk changed in use')
    }
  } finally {
    release()
  }
  return Buffer.concat(copies)
}

const formatHead = (length: number) =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`

t.test('receives every byte, in packets of any size', async (t) => {
  for (const size of [0, 1, 65_535, 65_536, 65_537, 1_000_003]) {
    const bytes = randomBytes(size)
    const url = await startServer(t, (socket) => {
      socket.write(formatHead(size))
      socket.end(bytes)
    })
    t.ok((await fetchAll(url, size)).equals(bytes), `${size} bytes in one write`)
  }
  const bytes = randomBytes(20_000)
  const url = await startServer(t, async (socket) => {
    socket.setNoDelay(true)
    for (const byte of Buffer.from(formatHead(bytes.length))) {
      socket.write(Buffer.from([byte]))
      await setImmediate()
    }
    for (let at = 0; at < bytes.length; at += 701) {
      socket.write(bytes.subarray(at, at + 701))
      await setImmediate()
    }
    socket.end()
  })
  t.ok((await fetchAll(url, bytes.length)).equals(bytes), 'the head byte by byte, the body in small packets')
})

t.test('receives a chunked body when the length is unknown', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n'
  const complete = await startServer(t, (socket) => void socket.end(`${head}5\r\nhello\r\n0\r\n\r\n`))
  t.equal((await fetchAll(complete, null)).toString(), 'hello')
  const short = await startServer(t, (socket) => void socket.end(`${head}5\r\nhello\r\n`))
  await t.rejects(fetchAll(short, null), 'without the final chunk')
})

t.test('applies back-pressure to the sender', async (t) => {
  let sent = 0
  const size = 256 * 1024 * 1024
  const chunk = Buffer.alloc(65_536)
  const url = await startServer(t, (socket) => {
    socket.write(formatHead(size))
    const writeUntilFull = () => {
      while (sent < size && socket.write(chunk)) sent += chunk.length
    }
    socket.on('drain', writeUntilFull)
    writeUntilFull()
  })
  const { chunks, release } = await startFetch(url, size)
  await chunks[Symbol.asyncIterator]().next()
  let sentBefore = -1
  // Wait until the sender has made no progress for 100 ms.
  for (let unchanged = 0; unchanged < 50; unchanged = sent === sentBefore ? unchanged + 1 : 0) {
    sentBefore = sent
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  t.ok(sent < size / 4, `${sent} bytes were sent to a reader of one chunk`)
  release()
})

t.test('rejects a response that does not have the expected body', async (t) => {
  const cases: [string, string, RegExp][] = [
    ['a short body', `${formatHead(10)}12345`, /aborted/],
    ['another content-length', `${formatHead(11)}12345678901`, /does not declare 10 bytes/],
    ['no content-length', 'HTTP/1.1 200 OK\r\n\r\n1234567890', /does not declare 10 bytes/],
    [
      'chunked encoding',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\n',
      /does not declare 10 bytes/,
    ],
    [
      'contradicting framing',
      'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n1234567890',
      /Parse Error/,
    ],
    ['an error status', 'HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}', /rejected with status 404/],
    ['another protocol', 'SSH-2.0-OpenSSH\r\n\r\n', /Parse Error/],
    ['oversized headers', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`, /Header overflow|Parse Error/],
    ['an empty response', '', /socket hang up/],
  ]
  for (const [name, response, message] of cases) {
    const url = await startServer(t, (socket) => void socket.end(response))
    await t.rejects(fetchAll(url, 10), { message }, name)
  }
})

t.test('rejects when the connection is reset or refused', async (t) => {
  for (const sent of [
    '',
    'HTTP/1.1 200',
    formatHead(100_000),
    `${formatHead(100_000)}${'x'.repeat(50_000)}`,
  ]) {
    const url = await startServer(t, (socket) => {
      if (sent === '') socket.resetAndDestroy()
      else socket.write(sent, () => socket.resetAndDestroy())
    })
    await t.rejects(fetchAll(url, 100_000), `reset after ${sent.length} bytes`)
  }
  await t.rejects(fetchAll('http://127.0.0.1:1', 1), { code: 'ECONNREFUSED' }, 'refused')
})
