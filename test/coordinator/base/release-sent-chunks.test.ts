// Freeing the memory of chunks that have been sent to the client.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { releaseSentChunks } from '../../../coordinator/base/release-sent-chunks.ts'

/** Small enough that the response buffers several chunks before it pauses its source. */
const CHUNK_BYTES = 20 * 1024

/** A source of `count` random chunks, each with its own ArrayBuffer, or all in one. A freed chunk has the length 0. */
function createSource(count: number, { isShared = false } = {}) {
  const hash = createHash('sha256')
  const chunks: Buffer[] = []
  const sharedMemory = Buffer.alloc(count * CHUNK_BYTES)
  const stream = new Readable({
    read() {
      if (chunks.length === count) return void this.push(null)
      const chunk = isShared
        ? sharedMemory.subarray(chunks.length * CHUNK_BYTES, (chunks.length + 1) * CHUNK_BYTES)
        : Buffer.from(new ArrayBuffer(CHUNK_BYTES))
      randomBytes(CHUNK_BYTES).copy(chunk)
      hash.update(chunk)
      chunks.push(chunk)
      this.push(chunk)
    },
  })
  const countInMemory = () => chunks.filter(({ length }) => length > 0).length
  return { stream, chunks, countInMemory, digest: () => hash.digest('hex') }
}

/** Starts a server whose responses `respond` sends, and returns the response to one request. */
async function openResponse(t: Test, respond: (response: ServerResponse) => void): Promise<IncomingMessage> {
  const server = createServer((_request, response) => respond(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const [response] = await once(get({ port: address.port, host: '127.0.0.1' }), 'response')
  return response
}

/** Reads more slowly than the server sends, so that chunks wait in the queue of the response. */
const readDigestSlowly = async (body: IncomingMessage) => {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of body) {
    hash.update(chunk)
    size += chunk.length
    if (size % (1024 * 1024) < 65_536) await delay(1)
  }
  return hash.digest('hex')
}

t.test('a slow client gets every byte, and chunks are freed when they are sent', async (t) => {
  const { stream, chunks, countInMemory, digest } = createSource(512)
  let peakCount = 0
  const body = await openResponse(t, (response) => {
    releaseSentChunks(response)
    stream.on('data', () => {
      peakCount = Math.max(peakCount, countInMemory())
    })
    stream.pause()
    stream.pipe(response)
  })
  t.equal(await readDigestSlowly(body), digest())
  t.ok(peakCount < 64, `${peakCount} of 512 chunks were in memory`)
  t.ok(
    chunks.every(({ length }) => length === 0),
    'every chunk is freed in the end',
  )
})

t.test('does not free memory that chunks share', async (t) => {
  const { stream, chunks, digest } = createSource(64, { isShared: true })
  const body = await openResponse(t, (response) => {
    releaseSentChunks(response)
    stream.pipe(response)
  })
  t.equal(await readDigestSlowly(body), digest())
  t.ok(chunks.every(({ length }) => length === CHUNK_BYTES))
})

t.test('frees the chunks in flight when the client disconnects', async (t) => {
  const { stream, countInMemory } = createSource(512)
  const closed = Promise.withResolvers<void>()
  const body = await openResponse(t, (response) => {
    releaseSentChunks(response)
    response.once('close', closed.resolve)
    stream.pipe(response)
  })
  await once(body, 'readable')
  body.destroy()
  await closed.promise
  const remaining = countInMemory()
  t.ok(remaining <= 2, `${remaining} chunks remain, in the buffer of the source`)
})
