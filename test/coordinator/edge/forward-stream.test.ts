// Forwarding an agent's frames to a client as server-sent events: errors, disconnects, slow clients and time limits.
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { forwardStream } from '../../../coordinator/edge/forward-stream.ts'
import { encodeFrame, type StreamFrame } from '../../../shared/stream-frames.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PROCESS_ID = 'p_0123456789abcdef01234567'
const event = (name: string, id: string, data: object) =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`
const at = (stdoutOffset: number, stderrOffset = 0) => ({ stdoutOffset, stderrOffset })

const ATTACHED: StreamFrame = { event: 'attached', ...at(0), processId: PROCESS_ID }
const output = (text: string, from = 0): StreamFrame => ({
  event: 'stdout',
  ...at(from + text.length),
  bytes: Buffer.from(text),
})
/** More bytes than the client's PassThrough accepts before it signals back-pressure. */
const LARGE_OUTPUT = [0, 1, 2, 3, 4].map((index) => output('x'.repeat(40_000), index * 40_000))
const EXIT: StreamFrame = {
  event: 'exit',
  ...at(3),
  status: 'exited',
  exitCode: 0,
  signal: null,
  timedOut: false,
}

const ATTACHED_EVENT = event('attached', '0:0', { processId: PROCESS_ID, ...at(0) })
const OUTPUT_EVENT = event('stdout', '3:0', { data: 'abc', offset: 0, nextOffset: 3 })
const EXIT_EVENT = event('exit', '3:0', {
  status: 'exited',
  exitCode: 0,
  signal: null,
  timedOut: false,
  ...at(3),
})

/** Starts forwarding. The test sends the agent's frames with `send`; the client reads everything, or nothing. */
function forward(
  t: Test,
  { lifetimeMs = 60_000, lingerMs = 10_000, heartbeatMs = 15_000, isReading = true } = {},
) {
  const messages = new PassThrough({ objectMode: true, highWaterMark: 8 })
  const client = new PassThrough()
  const closing = new AbortController()
  t.teardown(() => {
    messages.destroy()
    client.destroy()
  })
  let text = ''
  if (isReading)
    client.on('data', (chunk) => {
      text += chunk
    })
  const forwarded = forwardStream(messages, client, {
    processId: PROCESS_ID,
    from: { stdout: 5, stderr: 6 },
    encoding: 'utf8',
    closing: closing.signal,
    ...{ lifetimeMs, lingerMs, heartbeatMs },
  })
  return {
    messages,
    client,
    closing,
    forwarded,
    send(...frames: StreamFrame[]) {
      for (const frame of frames) messages.write(encodeFrame(frame))
    },
    received: () => text,
    /** Resolves with the received text once both sides have closed. @param agentCloses after the client's side has closed */
    async finished({ agentCloses = true } = {}): Promise<string> {
      await waitUntil("the client's side is closed", () => client.readableEnded)
      if (agentCloses) messages.destroy()
      await waitUntil('both sides are closed', () => messages.destroyed)
      return text
    },
  }
}

t.test('forwards frames up to the final one, then closes both sides', async (t) => {
  const { send, messages, finished } = forward(t)
  send(ATTACHED, output('abc'), EXIT)
  messages.end()
  t.equal(await finished(), ATTACHED_EVENT + OUTPUT_EVENT + EXIT_EVENT)
})

t.test(
  'closes the connection of an agent that leaves it open after the final frame, or sends more',
  async (t) => {
    const silent = forward(t)
    silent.send(ATTACHED, output('abc'), EXIT)
    t.equal(await silent.finished({ agentCloses: false }), ATTACHED_EVENT + OUTPUT_EVENT + EXIT_EVENT)
    const sending = forward(t)
    sending.send(ATTACHED, output('abc'), EXIT, output('more', 3))
    t.equal(await sending.finished({ agentCloses: false }), ATTACHED_EVENT + OUTPUT_EVENT + EXIT_EVENT)
  },
)

t.test('reports a lost connection as box_unreachable with the last position', async (t) => {
  for (const disconnect of [
    (messages: PassThrough) => messages.destroy(new Error('reset')),
    (messages: PassThrough) => messages.destroy(),
    (messages: PassThrough) => messages.end(),
  ]) {
    const { send, messages, finished, received } = forward(t)
    send(ATTACHED, output('abc'))
    await waitUntil('the output has arrived', () => received() === ATTACHED_EVENT + OUTPUT_EVENT)
    disconnect(messages)
    const [, errorEvent = ''] = (await finished()).split(ATTACHED_EVENT + OUTPUT_EVENT)
    t.match(errorEvent, /^event: error\nid: 3:0\ndata: \{"code":"box_unreachable","message":".*"\}\n\n$/)
  }
  const { messages, finished } = forward(t)
  messages.destroy()
  t.match(await finished(), /^event: error\nid: 5:6\n/, "before any frame: the client's own position")
})

t.test('reports box_unreachable without heartbeats, but not while the client is slow', async (t) => {
  const silent = forward(t, { heartbeatMs: 20 })
  silent.send(ATTACHED, output('abc'))
  const [, errorEvent = ''] = (await silent.finished()).split(ATTACHED_EVENT + OUTPUT_EVENT)
  t.match(errorEvent, /^event: error\nid: 3:0\ndata: \{"code":"box_unreachable"/)

  const slow = forward(t, { heartbeatMs: 20, isReading: false })
  slow.send(ATTACHED, ...LARGE_OUTPUT)
  await waitUntil('the client is slow', () => slow.client.writableNeedDrain)
  await forward(t, { heartbeatMs: 20 }).finished()
  t.notOk(slow.messages.destroyed, 'still open when another stream has timed out')
})

t.test('rejects protocol violations with exec_failed and the last position', async (t) => {
  for (const [name, invalid] of Object.entries({
    'not a frame': Buffer.from('not a frame'),
    'a second attached frame': encodeFrame(ATTACHED),
    'a header with thousands of values': Buffer.from(
      `{"event":"heartbeat","stdoutOffset":3,"stderrOffset":0,"x":[${'0,'.repeat(3000)}0]}\n`,
    ),
    'a decreasing offset': encodeFrame({ event: 'heartbeat', ...at(2) }),
    'output that overlaps earlier output': encodeFrame({
      event: 'stdout',
      ...at(4),
      bytes: Buffer.from('xx'),
    }),
  })) {
    const { send, messages, finished } = forward(t)
    send(ATTACHED, output('abc'))
    messages.write(invalid)
    send(EXIT)
    const [, errorEvent = ''] = (await finished()).split(OUTPUT_EVENT)
    t.match(
      errorEvent,
      /^event: error\nid: 3:0\ndata: \{"code":"exec_failed","message":"The agent violated .*\."\}\n\n$/,
      name,
    )
  }
  for (const [name, firstFrame] of Object.entries({
    'output before attached': output('abc'),
    'exit before attached': EXIT,
    'the id of another process': { ...ATTACHED, processId: 'p_111111111111111111111111' },
  } satisfies Record<string, StreamFrame>)) {
    const { send, finished } = forward(t)
    send(firstFrame)
    t.match(await finished(), /^event: error\nid: 5:6\ndata: \{"code":"exec_failed"/, name)
  }
})

t.test('ends a stream of endless heartbeats', async (t) => {
  const { send, finished } = forward(t)
  send(ATTACHED)
  for (let i = 0; i < 200; i++) send({ event: 'heartbeat', ...at(0) })
  t.match(await finished(), /"code":"exec_failed".*more than 100 frames without output/)
})

t.test("forwards an agent's error, with exec_failed for a code that agents may not use", async (t) => {
  for (const [code, forwarded] of [
    ['not_found', 'not_found'],
    ['unauthorized', 'exec_failed'],
  ] as const) {
    const { send, finished } = forward(t)
    send({ event: 'error', ...at(5, 6), code, message: 'deleted' })
    t.equal(await finished(), event('error', '5:6', { code: forwarded, message: 'deleted' }))
  }
})

t.test('sends a reconnect event when the coordinator stops or the stream lifetime ends', async (t) => {
  const stopping = forward(t)
  stopping.send(ATTACHED, output('abc'))
  await waitUntil('the output has arrived', () => stopping.received() === ATTACHED_EVENT + OUTPUT_EVENT)
  stopping.closing.abort()
  t.equal(await stopping.finished(), ATTACHED_EVENT + OUTPUT_EVENT + event('reconnect', '3:0', at(3)))
  const expired = forward(t, { lifetimeMs: 1 })
  t.equal(await expired.finished(), event('reconnect', '5:6', at(5, 6)))
})

t.test("a client that disconnects closes the agent's connection", async (t) => {
  const { send, messages, client, forwarded } = forward(t)
  send(ATTACHED)
  client.destroy()
  await waitUntil('the connection is closed', () => messages.destroyed)
  await forwarded
})

t.test('a client that disconnects while it is slow closes the connection too', async (t) => {
  const { send, messages, client, forwarded } = forward(t, { isReading: false })
  send(ATTACHED, ...LARGE_OUTPUT)
  await waitUntil('the client is slow', () => client.writableNeedDrain)
  client.destroy()
  await forwarded
  await waitUntil('the connection is closed', () => messages.destroyed)
})

t.test(
  'a client that stops reading pauses the agent in bounded memory, and later gets all output',
  async (t) => {
    const { messages, client, finished } = forward(t, { isReading: false })
    messages.write(encodeFrame(ATTACHED))
    const chunk = 'x'.repeat(30_000)
    let sent = 0
    const send = () => {
      sent += 1
      return messages.write(encodeFrame(output(chunk, (sent - 1) * chunk.length)))
    }
    while (send() && sent < 1000) await new Promise((resolve) => setImmediate(resolve))
    t.ok(sent < 30, `paused after ${sent} frames`)
    t.ok(client.writableLength + client.readableLength < 500_000)
    let text = ''
    client.on('data', (part) => {
      text += part
    })
    messages.end(encodeFrame({ ...EXIT, ...at(sent * chunk.length) }))
    await finished()
    const lengths = [...text.matchAll(/"data":"(x+)"/g)].map(([, part = '']) => part.length)
    t.equal(
      lengths.reduce((sum, length) => sum + length, 0),
      sent * chunk.length,
    )
  },
)

t.test('disconnects a client that does not read the final event', async (t) => {
  for (const end of [
    (messages: PassThrough) => messages.end(encodeFrame(EXIT)),
    (messages: PassThrough) => messages.destroy(),
  ]) {
    const { send, messages, client } = forward(t, { isReading: false, lingerMs: 10 })
    send(ATTACHED, output('abc'))
    end(messages)
    await waitUntil('the client is disconnected', () => client.destroyed)
  }
})

t.test('leaves no listener on the shared closing signal', async (t) => {
  const { send, closing, finished } = forward(t)
  t.equal(EventEmitter.getEventListeners(closing.signal, 'abort').length, 1)
  send(ATTACHED, output('abc'), EXIT)
  await finished()
  t.equal(EventEmitter.getEventListeners(closing.signal, 'abort').length, 0)
})
