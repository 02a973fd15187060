// Over real HTTP: what goes out piece by piece is one well-formed answer, and one that is cut off is none.
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { type EventWriter, eventWriter } from '../../../coordinator/edge/event-writer.ts'

async function serve(t: Test, answer: (writer: EventWriter, request: IncomingMessage) => void) {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    answer(eventWriter(response), request)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    async open() {
      const request = get({ port, host: '127.0.0.1', agent: false })
      const [response] = await once(request, 'response')
      return response as IncomingMessage
    },
    /** All that comes for these bytes, as it comes. */
    async exchange(bytes: string) {
      const socket = connect(port, '127.0.0.1')
      socket.write(bytes)
      return text(socket)
    },
  }
}

t.test('writes of any size come in their order, and the answer ends', async (t) => {
  const pieces = [
    'a',
    'b'.repeat(100),
    'ü€😀',
    'l'.repeat(100_000),
    'c',
    '',
    'm'.repeat(20_000),
    'd'.repeat(16_384),
  ]
  const { open } = await serve(t, (writer) => {
    for (const [index, piece] of pieces.entries()) writer.write(index % 2 === 0 ? piece : Buffer.from(piece))
    writer.end()
  })
  const response = await open()
  t.equal(response.headers['transfer-encoding'], 'chunked')
  t.equal(await text(response), pieces.join(''))
  t.ok(response.complete)
})

t.test('each write is one chunk', async (t) => {
  const { exchange } = await serve(t, (writer) => {
    writer.write('0123456789abcdef')
    writer.write(Buffer.from('more'))
    writer.end()
  })
  const answer = await exchange('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  t.equal(
    answer.slice(answer.indexOf('\r\n\r\n')),
    '\r\n\r\n10\r\n0123456789abcdef\r\n4\r\nmore\r\n0\r\n\r\n',
  )
})

t.test('an answer that is cut off does not look complete', async (t) => {
  const { open } = await serve(t, (writer) => {
    writer.write('begun')
    setImmediate(() => writer.destroy())
  })
  const response = await open()
  await t.rejects(text(response), { code: 'ECONNRESET' })
  t.notOk(response.complete)
})

t.test('who does not read is noticed, and told of when it reads again', async (t) => {
  let written = 0
  const full = Promise.withResolvers<void>()
  const drained = Promise.withResolvers<void>()
  const { open } = await serve(t, (writer) => {
    const piece = Buffer.alloc(10_000, 'x')
    do written += piece.length
    while (writer.write(piece) && written < 1e9)
    writer.on('drain', () => {
      drained.resolve()
      writer.end()
    })
    full.resolve()
  })
  const response = await open()
  await full.promise
  t.ok(written < 100_000_000, `${written} bytes`)
  const read = text(response)
  await drained.promise
  t.equal((await read).length, written)
})

t.test('a client that leaves closes it', async (t) => {
  const closed = Promise.withResolvers<boolean>()
  const { open } = await serve(t, (writer) => {
    writer.write('begun')
    writer.once('close', () => closed.resolve(writer.destroyed))
  })
  const response = await open()
  response.destroy()
  t.ok(await closed.promise)
})

t.test(
  'behind an earlier request of its connection it waits its turn; who knows no chunks gets none',
  async (t) => {
    const { exchange } = await serve(t, (writer, request) => {
      const number = request.url === '/1' ? 1 : 2
      setTimeout(
        () => {
          writer.write(`body ${number}`)
          writer.end()
        },
        number === 1 ? 20 : 0,
      )
    })
    const answers = await exchange(
      'GET /1 HTTP/1.1\r\nhost: x\r\n\r\nGET /2 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    )
    t.match(
      answers,
      /^HTTP\/1\.1 200 .*\r\n\r\n6\r\nbody 1\r\n0\r\n\r\nHTTP\/1\.1 200 .*6\r\nbody 2\r\n0\r\n\r\n$/s,
    )
    t.match(await exchange('GET /2 HTTP/1.0\r\n\r\n'), /\r\n\r\nbody 2$/)
  },
)
