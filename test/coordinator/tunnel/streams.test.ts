// What an agent has others follow: over real WebSockets, from its dialer to the coordinator's reader.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { produceEvents } from '../../../agent/exec/stream/produce-events.ts'
import { createStreamDialer, type Sink } from '../../../agent/tunnel/stream-dialer.ts'
import { STREAM_PATH } from '../../../shared/protocol.ts'
import { memoryProcess } from '../../agent/exec/stream/support.ts'
import { heapBytes } from '../../support/heap.ts'
import { readAll, startTestCoordinator, until } from '../../support/tunnel.ts'

async function setUp(t: Test, options: Parameters<typeof startTestCoordinator>[0] = {}) {
  const coordinator = await startTestCoordinator({ transferDialMs: 5000, ...options })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const dialerOf = ({ boxId, token }: typeof box) =>
    createStreamDialer({ boxId, readUrl: async () => coordinator.url, readToken: async () => token })
  /** As an agent that does as it likes. */
  const connect = (id: string) =>
    new WebSocket(`${coordinator.url.replace('http', 'ws')}${STREAM_PATH}${id}`, {
      headers: { authorization: `Bearer ${box.token}`, 'boxwood-box': box.boxId },
    })
  return { coordinator, box, dialer: dialerOf(box), dialerOf, connect, streams: coordinator.tunnels.streams }
}

/** Has begun, and says more when the test does. */
function begunSource() {
  const opened = Promise.withResolvers<Sink>()
  let stopped = 0
  return {
    open(sink: Sink) {
      opened.resolve(sink)
      return {
        more: () => void sink.push(Buffer.from('begun')),
        stop() {
          stopped++
        },
      }
    },
    sink: opened.promise,
    stopped: () => stopped,
  }
}

t.test('each chunk comes as it is sent, up to the end', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const expected = streams.expect(box.boxId)
  const source = begunSource()
  const bringing = dialer.bring(expected.id, source.open)
  const stream = await expected.dialed
  t.equal(String((await once(stream, 'data'))[0]), 'begun')
  const sink = await source.sink
  sink.push(Buffer.from('and more'))
  t.equal(String((await once(stream, 'data'))[0]), 'and more')
  sink.push(Buffer.from('all'))
  sink.end()
  t.equal((await readAll(stream)).toString(), 'all')
  await bringing
  t.equal(source.stopped(), 1)
})

t.test('nothing of it is lost on a reader who comes to it when its connection has ended', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const expected = streams.expect(box.boxId)
  await dialer.bring(expected.id, (sink) => ({
    more() {
      for (let i = 0; i < 10; i++) sink.push(Buffer.alloc(10_000, String(i)))
      sink.end()
    },
    stop: () => undefined,
  }))
  t.equal((await readAll(await expected.dialed)).length, 100_000)
})

t.test('it is for one box and for one use', async (t) => {
  const { coordinator, streams, box, dialer, dialerOf } = await setUp(t)
  const expected = streams.expect(box.boxId)
  const refused = async (from: typeof dialer, id: string, message: RegExp, what: string) => {
    const open = () => t.fail('nothing was to be opened')
    await t.rejects(from.bring(id, open as never), { message }, what)
  }
  await refused(dialerOf(coordinator.addBox()), expected.id, /404/, "another box's id")
  await refused(dialerOf({ ...box, token: 'wrong' }), expected.id, /401/, 'a wrong token')
  const source = begunSource()
  const bringing = dialer.bring(expected.id, source.open)
  const stream = await expected.dialed
  ;(await source.sink).end()
  t.equal((await readAll(stream)).toString(), 'begun')
  await bringing
  await refused(dialer, expected.id, /404/, 'a second use')
  const released = streams.expect(box.boxId)
  released.release()
  await t.rejects(released.dialed, { code: 'box_unreachable' })
  await refused(dialer, released.id, /404/, 'a released one')
})

t.test('a box that does not dial in is unreachable', async (t) => {
  const { streams, box } = await setUp(t, { transferDialMs: 10 })
  await t.rejects(streams.expect(box.boxId).dialed, { code: 'box_unreachable' })
})

t.test('one that comes when nobody waits for it any more is refused', async (t) => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<boolean>()
  const { streams, box, dialer } = await setUp(t, {
    authenticate() {
      asked.resolve()
      return answer.promise
    },
  })
  const expected = streams.expect(box.boxId)
  const bringing = dialer.bring(expected.id, begunSource().open)
  await asked.promise
  expected.release()
  answer.resolve(true)
  await t.rejects(bringing, { message: /404/ })
})

t.test('whoever breaks off, the other side learns of it', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  for (const [how, cut] of Object.entries({
    'the agent stops': (_: Readable) => dialer.close(),
    'the reader leaves': (stream: Readable) => stream.destroy(),
  })) {
    const expected = streams.expect(box.boxId)
    const source = begunSource()
    const bringing = t.rejects(dialer.bring(expected.id, source.open), how)
    const stream = await expected.dialed
    await once(stream, 'data')
    const closed = once(stream, 'close')
    stream.resume()
    cut(stream)
    await Promise.all([bringing, closed])
    t.equal(source.stopped(), 1)
  }
})

t.test('a box whose token is no longer valid loses its streams, and no other does', async (t) => {
  const { coordinator, streams, box, dialer, dialerOf } = await setUp(t)
  const other = coordinator.addBox()
  const open = async (boxId: string, from: typeof dialer) => {
    const expected = streams.expect(boxId)
    const source = begunSource()
    const brought = from.bring(expected.id, source.open)
    brought.catch(() => undefined)
    const stream = await expected.dialed
    return { source, brought, stream: stream.resume() }
  }
  const one = await open(box.boxId, dialer)
  const two = await open(box.boxId, dialer)
  const others = await open(other.boxId, dialerOf(other))
  coordinator.tunnels.disconnect(box.boxId, 'the test says so')
  await t.rejects(one.brought)
  await t.rejects(two.brought)
  await until('their readers have ended', () => one.stream.destroyed && two.stream.destroyed)
  ;(await others.source.sink).end()
  await others.brought
})

t.test('of thousands of readers that leave nothing stays on either side', { timeout: 90_000 }, async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const { process, stdout } = memoryProcess()
  const followed = {
    process,
    offsets: { stdout: 0, stderr: 0 },
    streams: ['stdout', 'stderr'],
    encoding: 'utf8',
    onError: (error: unknown) => t.error(error),
  } as const
  const visit = async () => {
    const expected = streams.expect(box.boxId)
    const bringing = dialer.bring(expected.id, (sink) => produceEvents(followed, sink)).catch(() => undefined)
    const stream = await expected.dialed
    await once(stream, 'data')
    stream.destroy()
    await bringing
  }
  const visits = async (count: number) => {
    for (let left = count; left > 0; left -= 20) await Promise.all(Array.from({ length: 20 }, visit))
  }
  await visits(1000)
  const before = await heapBytes()
  await visits(4000)
  t.equal(stdout.watchers(), 0)
  const grown = (await heapBytes()) - before
  // A leak of 500 bytes for each would be more.
  t.ok(grown < 2_000_000, `${grown} bytes more`)
})

t.test('a reader that stops reading stops the box', async (t) => {
  const { streams, box, dialer } = await setUp(t)
  const expected = streams.expect(box.boxId)
  let produced = 0
  const bringing = dialer.bring(expected.id, (sink) => ({
    more() {
      do produced += 65_536
      while (sink.push(Buffer.alloc(65_536)))
    },
    stop: () => undefined,
  }))
  const stream = await expected.dialed
  let last = -1
  let same = 0
  await until('the box stops reading', () => {
    same = produced === last ? same + 1 : 0
    last = produced
    return same > 20
  })
  const onTheWay = produced
  t.ok(onTheWay < 32 * 1024 * 1024, `${onTheWay} bytes are on the way`)
  stream.resume()
  await until('it goes on when the reader does', () => produced > 2 * onTheWay)
  stream.destroy()
  await t.rejects(bringing)
})

t.test('text, and a message that is too large, end the stream', async (t) => {
  const { streams, box, connect } = await setUp(t)
  for (const message of ['text', Buffer.alloc(1024 * 1024 + 1)]) {
    const expected = streams.expect(box.boxId)
    const ws = connect(expected.id)
    const opened = once(ws, 'open')
    ws.on('error', () => undefined)
    const stream = await expected.dialed
    const failed = once(stream, 'close').catch((error: Error) => error)
    stream.on('error', () => undefined).resume()
    const closed = once(ws, 'close')
    await opened
    ws.send(message)
    await Promise.all([failed, closed])
    t.ok(stream.destroyed)
  }
})
