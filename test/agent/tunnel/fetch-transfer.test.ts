import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { fetchTransfer } from '../../../agent/tunnel/fetch-transfer.ts'

const BLOCK = 4096

/** A server that says what it is told to, whatever is asked of it. */
async function serve(t: Test, talk: (socket: Socket) => void): Promise<URL> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => talk(socket))
    t.after(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return new URL(`http://127.0.0.1:${address.port}/agent/transfers/x`)
}

const fetching = (url: URL, length: number) =>
  fetchTransfer({ url, headers: { authorization: 'Bearer x' }, length, blockBytes: BLOCK, idleMs: 10_000 })

async function read(url: URL, length: number): Promise<Buffer> {
  const { chunks, release } = fetching(url, length)
  const copies: Buffer[] = []
  try {
    for await (const chunk of chunks) {
      copies.push(Buffer.from(chunk))
      // Whoever uses a chunk takes its time: what is read meanwhile must not touch it.
      const before = createHash('sha1').update(chunk).digest('hex')
      await setImmediate()
      if (createHash('sha1').update(chunk).digest('hex') !== before) throw new Error('a chunk changed in use')
    }
  } finally {
    release()
  }
  return Buffer.concat(copies)
}

const head = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`

t.test('every byte arrives, however it is cut', async (t) => {
  for (const size of [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 1_000_003]) {
    const bytes = randomBytes(size)
    const whole = await serve(t, (socket) => {
      socket.write(head(size))
      socket.end(bytes)
    })
    t.ok((await read(whole, size)).equals(bytes), `${size} bytes at once`)
  }
  const bytes = randomBytes(3 * BLOCK + 17)
  const trickling = await serve(t, async (socket) => {
    socket.setNoDelay(true)
    for (const byte of Buffer.from(head(bytes.length))) {
      socket.write(Buffer.from([byte]))
      await setImmediate()
    }
    for (let at = 0; at < bytes.length; at += 701) {
      socket.write(bytes.subarray(at, at + 701))
      await setImmediate()
    }
    socket.end()
  })
  t.ok((await read(trickling, bytes.length)).equals(bytes), 'byte by byte')
})

t.test('a sender is held up while nobody reads', async (t) => {
  let sent = 0
  const size = 256 * 1024 * 1024
  const piece = Buffer.alloc(65_536)
  const url = await serve(t, (socket) => {
    socket.write(head(size))
    const more = () => {
      while (sent < size && socket.write(piece)) sent += piece.length
    }
    socket.on('drain', more)
    more()
  })
  const { chunks, release } = fetching(url, size)
  await chunks.next()
  let last = -1
  for (let same = 0; same < 50; same = sent === last ? same + 1 : 0) {
    last = sent
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  t.ok(sent < size / 4, `${sent} bytes were sent to a reader of one block`)
  release()
})

t.test('what is not the body that was announced is an error', async (t) => {
  const answers: [string, string, RegExp][] = [
    ['short', `${head(10)}12345`, /ended early/],
    ['long', `${head(10)}12345678901`, /more than 10 bytes/],
    ['another length', `${head(11)}12345678901`, /does not declare 10 bytes/],
    ['no length', 'HTTP/1.1 200 OK\r\n\r\n1234567890', /does not declare 10 bytes/],
    [
      'two lengths',
      'HTTP/1.1 200 OK\r\nContent-Length: 10\r\ncontent-length: 10\r\n\r\n1234567890',
      /does not declare/,
    ],
    [
      'chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n1234567890',
      /does not declare/,
    ],
    ['a refusal', 'HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}', /refused with status 404/],
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', /not HTTP/],
    ['a head without an end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(2 * BLOCK)}`, /not HTTP/],
    ['nothing', '', /ended early/],
  ]
  for (const [name, answer, message] of answers) {
    const url = await serve(t, (socket) => void socket.end(answer))
    await t.rejects(read(url, 10), { message }, name)
  }
})

t.test('a connection that is reset is an error, at any point', async (t) => {
  for (const said of ['', 'HTTP/1.1 200', head(100_000), `${head(100_000)}${'x'.repeat(50_000)}`]) {
    const url = await serve(t, (socket) => {
      if (said === '') socket.resetAndDestroy()
      else socket.write(said, () => socket.resetAndDestroy())
    })
    await t.rejects(read(url, 100_000), `after ${said.length} bytes`)
  }
  const url = await serve(t, () => undefined)
  url.port = '1'
  await t.rejects(read(url, 1), { code: 'ECONNREFUSED' }, 'nobody listens')
})
