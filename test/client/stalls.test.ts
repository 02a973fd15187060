// The client behind a proxy that stalls: in the head and in the body of a response, in a stream, in an upload, and in a handshake.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { Boxwood, ConnectionError, TimeoutError } from '../../client/exports.ts'
import { startCliCoordinator } from '../cli/coordinator.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { failNext, failNextUpgrade, requests, key, url } = coordinator
const boxwood = new Boxwood({ url, apiKey: key, idleMs: 300 })
const box = await boxwood.boxes.get('fig')
const TEXT = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('')
await box.files.write('numbers', TEXT)

/** Sends the first bytes of the coordinator's response, and nothing more. */
const stallAfter = (bytes: number) =>
  async function stall(
    response: ServerResponse,
    _request: IncomingMessage,
    forward: () => Promise<IncomingMessage>,
  ): Promise<void> {
    const upstream = await forward()
    response.writeHead(upstream.statusCode ?? 0, upstream.headers)
    response.flushHeaders()
    let left = bytes
    upstream.on('data', (data: Buffer) => {
      if (left > 0) response.write(data.subarray(0, left))
      left -= data.length
    })
  }

t.test('in a response: the time limit of the call includes its body', async (t) => {
  for (const bytes of [0, 1, 20]) {
    failNext('GET /api/v1/keys', stallAfter(bytes))
    await t.rejects(boxwood.routes.keys.list({}, { timeoutMs: 300 }), TimeoutError)
    failNext('GET /api/v1/boxes/', stallAfter(bytes))
    await t.rejects(box.waitUntilRunning({ timeoutMs: 300 }), TimeoutError)
  }
  const controller = new AbortController()
  failNext('GET /api/v1/keys', async (response, request, forward) => {
    await stallAfter(20)(response, request, forward)
    controller.abort(new Error('enough'))
  })
  await t.rejects(boxwood.routes.keys.list({}, { signal: controller.signal }), { message: 'enough' })
})

t.test('in a download: the time limit, and a connection that is cut', async (t) => {
  const download = `GET /v1/box/${box.id}/download`
  failNext(download, stallAfter(1000))
  await t.rejects(box.files.read('numbers', { timeoutMs: 300 }), TimeoutError)
  failNext(download, stallAfter(1000))
  await t.rejects(box.files.readBytes('numbers', { timeoutMs: 300 }), TimeoutError)
  failNext(download, stallAfter(1000))
  const stream = await box.files.download('numbers', { timeoutMs: 300 })
  await t.rejects(new Response(stream).text(), TimeoutError)
  failNext(download, async (response, _request, forward) => {
    const content = await text(await forward())
    response.writeHead(200, { 'content-length': content.length })
    response.write(content.slice(0, 1000), () => response.destroy())
  })
  await t.rejects(box.files.read('numbers'), ConnectionError)
  t.equal(await box.files.read('numbers'), TEXT)
})

t.test('in the stream of a command: it is resumed, and no byte is lost', async (t) => {
  const stream = `GET /v1/box/${box.id}/exec/`
  for (const bytes of [0, 10, 1000, 60_000]) failNext(stream, stallAfter(bytes))
  const before = requests.length
  t.match(await box.exec('cat numbers; exit 5'), { exitCode: 5, stdout: TEXT })
  const streams = requests.slice(before).filter(({ line }) => line.startsWith(stream))
  t.equal(streams.length, 5)
})

t.test('in the search for the edge: the time limit of the call', async (t) => {
  const other = new Boxwood({ url, apiKey: key })
  failNext('GET /api/v1/me', stallAfter(10))
  await t.rejects(other.routes.processes.list(box.id, { timeoutMs: 300 }), TimeoutError)
})

t.test(
  'in an upload that the proxy does not read: the time limit, and the source is cancelled',
  async (t) => {
    failNext('PUT', () => undefined)
    let isCancelled = false
    const source = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: () => {
        isCancelled = true
      },
    })
    await t.rejects(box.files.write('endless', source, { timeoutMs: 500 }), TimeoutError)
    t.ok(isCancelled)
    coordinator.clearFaults()
    await t.rejects(box.files.stat('endless'), { code: 'not_found' })
  },
)

t.test('in the handshake of a WebSocket: the time limit, and the signal', async (t) => {
  const handlers = { onMessage: () => undefined, onClose: () => undefined }
  const stall = (client: { on(event: 'error', listener: () => void): unknown }) =>
    void client.on('error', () => undefined)
  failNextUpgrade('GET', stall)
  await t.rejects(boxwood.routes.feed.open(handlers, {}, { timeoutMs: 300 }), TimeoutError)
  const controller = new AbortController()
  failNextUpgrade('GET', (client) => {
    stall(client)
    controller.abort(new Error('enough'))
  })
  await t.rejects(boxwood.routes.feed.open(handlers, {}, { signal: controller.signal }), {
    message: 'enough',
  })
  await new Promise<void>((resolve, reject) => {
    const open = boxwood.routes.feed.open({ ...handlers, onClose: () => resolve() })
    open.then((socket) => socket.close(), reject)
  })
})
