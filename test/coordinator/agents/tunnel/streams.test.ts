// Output streams over real WebSockets, from the agent's dialer to the coordinator's reader.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { streamFrames } from '../../../../agent/exec/stream/frames.ts'
import { createStreamDialer } from '../../../../agent/tunnel/stream-dialer.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { STREAM_PATH_PREFIX } from '../../../../shared/protocol.ts'
import { decodeFrame, isOutput, MAX_FRAME_BYTES, type StreamFrame } from '../../../../shared/stream-frames.ts'
import { createMemoryProcess } from '../../../agent/exec/stream/support.ts'
import { measureHeapBytes } from '../../../support/heap.ts'
import { startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

async function setUp(t: Test, options: Parameters<typeof startTunnelServer>[0] = {}) {
  const coordinator = await startTunnelServer({ dialBackTimeoutMs: DEADLINE_MS, ...options })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const createDialer = ({ boxId, token }: typeof box) =>
    createStreamDialer({ boxId, readUrl: async () => coordinator.url, readToken: async () => token })
  /** A connection without the dialer: for messages that no agent of ours sends. */
  const connect = (id: string) =>
    new WebSocket(`${coordinator.url.replace('http', 'ws')}${STREAM_PATH_PREFIX}${id}`, {
      headers: { authorization: `Bearer ${box.token}`, 'boxwood-box': box.boxId },
    })
  const { streams } = coordinator.tunnels
  return { coordinator, box, dialer: createDialer(box), createDialer, connect, streams }
}

const outputFrame = (text: string, stdoutOffset = text.length): StreamFrame => ({
  event: 'stdout',
  stdoutOffset,
  stderrOffset: 0,
  bytes: Buffer.from(text),
})

/** Frames that the test pushes one by one. Counts how often a stream was closed. */
function createFrameSource() {
  const queue: StreamFrame[] = [outputFrame('first')]
  let wake: (() => void) | undefined
  let hasEnded = false
  let closed = 0
  return {
    async *open(signal: AbortSignal): AsyncGenerator<StreamFrame> {
      signal.addEventListener('abort', () => wake?.(), { once: true })
      try {
        while (!signal.aborted) {
          const frame = queue.shift()
          if (frame !== undefined) yield frame
          else if (hasEnded) return
          else
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      } finally {
        closed += 1
      }
    },
    push(frame: StreamFrame) {
      queue.push(frame)
      wake?.()
    },
    end() {
      hasEnded = true
      wake?.()
    },
    closed: () => closed,
  }
}

const textOf = (message: unknown): string => {
  const frame = decodeFrame(message as Buffer)
  return isOutput(frame) ? frame.bytes.toString() : frame.event
}
const nextText = async (stream: Readable): Promise<string> => textOf((await once(stream, 'data'))[0])
const readTexts = async (stream: Readable): Promise<string[]> => (await stream.toArray()).map(textOf)

t.test('a flood of pings closes the stream', async (t) => {
  const { streams, box, connect } = await setUp(t)
  const pending = streams.expect(box.boxId)
  const ws = connect(pending.id)
  t.after(() => ws.terminate())
  const [messages] = await Promise.all([pending.connection, once(ws, 'open')])
  const failed = once(messages, 'error')
  for (let i = 0; i < 1000 && ws.readyState === ws.OPEN; i++) ws.ping()
  t.match(await failed, [{ message: 'the agent sent too many pings' }])
})

t.test('each frame arrives as one message when it is sent, up to the end', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const pending = streams.expect(box.boxId)
  const source = createFrameSource()
  const sending = dialer.send(pending.id, source.open)
  const stream = await pending.connection
  t.equal(await nextText(stream), 'first')
  source.push(outputFrame('second'))
  t.equal(await nextText(stream), 'second')
  source.push(outputFrame('last'))
  source.end()
  t.same(await readTexts(stream), ['last'])
  await sending
  t.equal(source.closed(), 1)
})

t.test('a reader that starts after the connection has closed still gets every frame', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const pending = streams.expect(box.boxId)
  await dialer.send(pending.id, async function* () {
    for (let i = 0; i < 5; i++) yield outputFrame(String(i).repeat(10_000))
  })
  t.equal((await readTexts(await pending.connection)).join('').length, 50_000)
})

t.test('a dial-back id is valid for one box and one connection', async (t) => {
  const { coordinator, streams, box, dialer, createDialer } = await setUp(t)
  const pending = streams.expect(box.boxId)
  const rejects = async (from: typeof dialer, id: string, message: RegExp, name: string) => {
    const open = () => t.fail('no stream may be opened')
    await t.rejects(from.send(id, open as never), { message }, name)
  }
  await rejects(createDialer(coordinator.addBox()), pending.id, /404/, "another box's id")
  await rejects(createDialer({ ...box, token: 'wrong' }), pending.id, /401/, 'a wrong token')
  const source = createFrameSource()
  const sending = dialer.send(pending.id, source.open)
  const stream = await pending.connection
  source.end()
  t.same(await readTexts(stream), ['first'])
  await sending
  await rejects(dialer, pending.id, /404/, 'a second use')
  const discarded = streams.expect(box.boxId)
  discarded.discard()
  await t.rejects(discarded.connection, { code: 'box_unreachable' })
  await rejects(dialer, discarded.id, /404/, 'a discarded id')
})

t.test('an agent that does not connect in time is unreachable', async (t) => {
  const { streams, box } = await setUp(t, { dialBackTimeoutMs: 10 })
  await t.rejects(streams.expect(box.boxId).connection, { code: 'box_unreachable' })
})

t.test('a client gets the reason when the box has too many connections', async (t) => {
  const { streams, box, dialer } = await setUp(t, {
    onAuthenticated(_socket, { boxId, workspaceId }, use) {
      throw new ApiError('rate_limited', `${boxId === box.boxId} ${workspaceId} ${use}`)
    },
  })
  const pending = streams.expect(box.boxId)
  const rejected = t.rejects(pending.connection, { code: 'rate_limited', message: 'true ws_1 other' })
  await t.rejects(dialer.send(pending.id, createFrameSource().open), { message: /429/ })
  await rejected
})

t.test('a dial-back id that is discarded during the authentication is rejected', async (t) => {
  const authenticating = Promise.withResolvers<void>()
  const result = Promise.withResolvers<string>()
  const { streams, box, dialer } = await setUp(t, {
    authenticate() {
      authenticating.resolve()
      return result.promise
    },
  })
  const pending = streams.expect(box.boxId)
  const sending = dialer.send(pending.id, createFrameSource().open)
  await authenticating.promise
  pending.discard()
  result.resolve('ws_1')
  await t.rejects(sending, { message: /404/ })
})

t.test('a disconnect on either side closes the other side', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  for (const [name, disconnect] of Object.entries({
    'the agent stops': (_: Readable) => dialer.close(),
    'the reader disconnects': (stream: Readable) => stream.destroy(),
  })) {
    const pending = streams.expect(box.boxId)
    const source = createFrameSource()
    const sending = t.rejects(dialer.send(pending.id, source.open), name)
    const stream = await pending.connection
    await once(stream, 'data')
    const closed = once(stream, 'close')
    stream.resume()
    disconnect(stream)
    await Promise.all([sending, closed])
    t.equal(source.closed(), 1)
  }
})

t.test("disconnecting a box closes its streams and no other box's", async (t) => {
  const { coordinator, streams, box, dialer, createDialer } = await setUp(t)
  const otherBox = coordinator.addBox()
  const open = async (boxId: string, from: typeof dialer) => {
    const pending = streams.expect(boxId)
    const source = createFrameSource()
    const sending = from.send(pending.id, source.open)
    sending.catch(() => undefined)
    const stream = await pending.connection
    return { source, sending, stream: stream.resume() }
  }
  const first = await open(box.boxId, dialer)
  const second = await open(box.boxId, dialer)
  const other = await open(otherBox.boxId, createDialer(otherBox))
  coordinator.tunnels.disconnect(box.boxId, 'disconnected by the test')
  await t.rejects(first.sending)
  await t.rejects(second.sending)
  await waitUntil('both streams are closed', () => first.stream.destroyed && second.stream.destroyed)
  other.source.end()
  await other.sending
})

t.test('thousands of disconnected readers leave nothing behind on either side', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const { process, stdout } = createMemoryProcess()
  const options = {
    detachedProcess: process,
    offsets: { stdout: 0, stderr: 0 },
    streams: ['stdout', 'stderr'],
    encoding: 'utf8',
    onError: (error: unknown) => t.error(error),
  } as const
  const readAndDisconnect = async () => {
    const pending = streams.expect(box.boxId)
    const sending = dialer.send(pending.id, (signal) => streamFrames(options, signal)).catch(() => undefined)
    const stream = await pending.connection
    await once(stream, 'data')
    stream.destroy()
    await sending
  }
  const run = async (count: number) => {
    for (let left = count; left > 0; left -= 20)
      await Promise.all(Array.from({ length: 20 }, readAndDisconnect))
  }
  await run(1000)
  const before = await measureHeapBytes()
  await run(4000)
  t.equal(stdout.watchers(), 0)
  const growth = (await measureHeapBytes()) - before
  // A leak of 500 bytes per reader exceeds this.
  t.ok(growth < 2_000_000, `the heap grew by ${growth} bytes`)
})

t.test('a reader that stops reading pauses the agent in bounded memory', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const pending = streams.expect(box.boxId)
  let produced = 0
  const sending = dialer.send(pending.id, async function* (signal) {
    while (!signal.aborted) {
      produced += 48 * 1024
      yield outputFrame('x'.repeat(48 * 1024), produced)
    }
  })
  const stream = await pending.connection
  let last = -1
  let unchanged = 0
  await waitUntil('the agent is paused', () => {
    unchanged = produced === last ? unchanged + 1 : 0
    last = produced
    return unchanged > 20
  })
  const inFlight = produced
  t.ok(inFlight < 32 * 1024 * 1024, `${inFlight} bytes in flight`)
  stream.resume()
  await waitUntil('the agent continues with the reader', () => produced > 2 * inFlight)
  stream.destroy()
  await t.rejects(sending)
})

t.test('a text message or an oversized message closes the connection', async (t) => {
  const { streams, box, connect } = await setUp(t)
  for (const message of ['text', Buffer.alloc(MAX_FRAME_BYTES + 1)]) {
    const pending = streams.expect(box.boxId)
    const ws = connect(pending.id)
    const opened = once(ws, 'open')
    ws.on('error', () => undefined)
    const stream = await pending.connection
    const streamClosed = once(stream, 'close').catch((error: Error) => error)
    stream.on('error', () => undefined).resume()
    const closed = once(ws, 'close')
    await opened
    ws.send(message)
    await Promise.all([streamClosed, closed])
    t.ok(stream.destroyed)
  }
})
