// Reading the output of a process when a connection is half-open.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createClient } from '../../../cli/connection/client.ts'
import { readOutput } from '../../../cli/follow/read-output.ts'

const createEvent = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
const createOutput = (text: string, offset: number) =>
  createEvent('stdout', {
    data: Buffer.from(text).toString('base64'),
    offset,
    nextOffset: offset + text.length,
  })

t.test('reconnects when a connection is open but delivers nothing', async (t) => {
  const positions: unknown[] = []
  const server = createServer((request, response) => {
    if (!request.url?.startsWith('/v1/box/fig/exec/p_1/stream?')) {
      response.writeHead(200, { 'content-type': 'application/json' })
      const { port } = server.address() as AddressInfo
      return void response.end(JSON.stringify({ boxes: [], edge: { url: `http://127.0.0.1:${port}` } }))
    }
    positions.push(request.headers['last-event-id'])
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(createEvent('attached', { processId: 'p_1', stdoutOffset: 0, stderrOffset: 0 }))
    if (positions.length === 1) return void response.write(createOutput('first', 0))
    const exit = { status: 'exited', exitCode: 9, signal: null, stdoutOffset: 11, stderrOffset: 0 }
    response.end(createOutput(', last', 5) + createEvent('exit', exit))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const config = { baseUrl: `http://127.0.0.1:${port}/api/v1`, key: 'key', urlSource: '', keySource: '' }
  const { signal } = new AbortController()
  const edge = await createClient(config, signal).createEdgeClient('fig')
  const chunks: Buffer[] = []
  const exit = await readOutput({
    edge,
    processId: 'p_1',
    signal,
    idleTimeoutMs: 300,
    from: { stdout: 0, stderr: 0 },
    onOutage: () => undefined,
    onReconnect: () => undefined,
    onMissing: () => t.fail('no output is missing'),
    onChunk: async ({ bytes }) => void chunks.push(bytes),
  })
  t.equal(Buffer.concat(chunks).toString(), 'first, last')
  t.match(exit, { exitCode: 9 })
  t.same(positions, ['0:0', '5:0'])
})

t.test('an error of the reader closes the connection', async (t) => {
  const closed = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    if (!request.url?.includes('/stream?')) {
      const { port } = server.address() as AddressInfo
      return void response.end(JSON.stringify({ boxes: [], edge: { url: `http://127.0.0.1:${port}` } }))
    }
    response.once('close', closed.resolve)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(createEvent('attached', { stdoutOffset: 0, stderrOffset: 0 }) + createOutput('first', 0))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const config = { baseUrl: `http://127.0.0.1:${port}/api/v1`, key: 'key', urlSource: '', keySource: '' }
  const { signal } = new AbortController()
  const reading = readOutput({
    edge: await createClient(config, signal).createEdgeClient('fig'),
    processId: 'p_1',
    signal,
    from: { stdout: 0, stderr: 0 },
    onOutage: () => undefined,
    onReconnect: () => undefined,
    onMissing: () => undefined,
    onChunk: () => Promise.reject(new Error('no space left')),
  })
  await t.rejects(reading, { message: 'no space left' })
  await closed.promise
})
