import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { releaseSentChunks } from '../../../coordinator/edge/release-sent.ts'

/** A few of them wait in the sink before it asks for a pause. */
const PIECE = 20 * 1024

/** A source of `count` random pieces, each with its own memory unless `alone` is false. */
function source(count: number, alone = true) {
  const hash = createHash('sha256')
  const made: Buffer[] = []
  const shared = Buffer.alloc(count * PIECE)
  const stream = new Readable({
    read() {
      if (made.length === count) return void this.push(null)
      const memory = alone
        ? Buffer.from(new ArrayBuffer(PIECE))
        : shared.subarray(made.length * PIECE, (made.length + 1) * PIECE)
      randomBytes(PIECE).copy(memory)
      hash.update(memory)
      made.push(memory)
      this.push(memory)
    },
  })
  return { stream, made, digest: () => hash.digest('hex') }
}

async function serve(t: Test, answer: (response: ServerResponse) => void): Promise<IncomingMessage> {
  const server = createServer((_request, response) => answer(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const [response] = await once(get({ port: address.port, host: '127.0.0.1' }), 'response')
  return response
}

const digestOf = async (body: IncomingMessage) => {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of body) {
    hash.update(chunk)
    size += chunk.length
    // A reader that is slower than the sender: bytes wait in its queue, and must not be freed there.
    if (size % (1024 * 1024) < 65_536) await delay(1)
  }
  return hash.digest('hex')
}

t.test('a slow reader gets every byte, and memory goes back as it is sent', async (t) => {
  const { stream, made, digest } = source(512)
  let most = 0
  const body = await serve(t, (response) => {
    releaseSentChunks(response)
    stream.on('data', () => {
      most = Math.max(most, made.filter(({ length }) => length > 0).length)
    })
    stream.pause()
    stream.pipe(response)
  })
  t.equal(await digestOf(body), digest())
  t.ok(most < 64, `${most} of 512 pieces were in memory at once`)
  t.ok(
    made.every(({ length }) => length === 0),
    'and none is in the end',
  )
})

t.test('memory that others share is left alone', async (t) => {
  const { stream, made, digest } = source(64, false)
  const body = await serve(t, (response) => {
    releaseSentChunks(response)
    stream.pipe(response)
  })
  t.equal(await digestOf(body), digest())
  t.ok(made.every(({ length }) => length === PIECE))
})

t.test('a reader that leaves: what was on its way is given back', async (t) => {
  const { stream, made } = source(512)
  const closed = Promise.withResolvers<void>()
  const body = await serve(t, (response) => {
    releaseSentChunks(response)
    response.once('close', closed.resolve)
    stream.pipe(response)
  })
  await once(body, 'readable')
  body.destroy()
  await closed.promise
  const kept = made.filter(({ length }) => length > 0).length
  t.ok(kept <= 2, `${kept} pieces wait in the source`)
})
