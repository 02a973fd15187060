import { EventEmitter, once } from 'node:events'
import { setImmediate as immediate } from 'node:timers/promises'
import t from 'tap'
import { type BinaryWebSocket, websocketDuplex, websocketReadable } from '../../shared/websocket-duplex.ts'
import { seeded } from '../support/random.ts'

/** Says when each message is sent. */
class FakeWebSocket extends EventEmitter {
  isPaused = false
  sent: Buffer[] = []
  unsent: (() => void)[] = []
  send(data: Uint8Array, done: (error?: Error | null) => void) {
    this.unsent.push(() => {
      this.sent.push(Buffer.from(data))
      done()
    })
  }
  flush() {
    for (const send of this.unsent.splice(0)) send()
  }
  pause() {
    this.isPaused = true
  }
  resume() {
    this.isPaused = false
  }
  terminate() {
    this.emit('close')
  }
}

function open() {
  const ws = new FakeWebSocket()
  return { ws, duplex: websocketDuplex(ws satisfies BinaryWebSocket) }
}
const KiB = 1024
const bytes = (size: number, fill: string) => Buffer.alloc(size, fill)

t.test('what was written arrives whole and in order, and is freed once it is sent', async (t) => {
  const { ws, duplex } = open()
  const first = bytes(40 * KiB, 'a')
  duplex.write(first)
  t.equal(first.length, 40 * KiB, 'not before it is sent')
  // These wait for it, and leave as one.
  const [second, third] = [bytes(20 * KiB, 'b'), bytes(20 * KiB, 'c')]
  duplex.write(second)
  duplex.write(third)
  ws.flush()
  t.equal(first.length, 0)
  t.same([second.length, third.length], [0, 0], 'copied by now')
  // Larger than is copied.
  const [fourth, fifth] = [bytes(60 * KiB, 'd'), bytes(60 * KiB, 'e')]
  duplex.write(fourth)
  duplex.write(fifth)
  ws.flush()
  t.same([fourth.length, fifth.length], [60 * KiB, 60 * KiB])
  ws.flush()
  t.same([fourth.length, fifth.length], [0, 0])
  t.same(
    ws.sent.map(({ length }) => length / KiB),
    [40, 40, 60, 60],
  )
  const written = [
    ['a', 40],
    ['b', 20],
    ['c', 20],
    ['d', 60],
    ['e', 60],
  ] as const
  t.ok(Buffer.concat(ws.sent).equals(Buffer.concat(written.map(([fill, size]) => bytes(size * KiB, fill)))))
})

t.test('a part of something larger stays', async (t) => {
  const { ws, duplex } = open()
  const larger = bytes(100 * KiB, 'x')
  duplex.write(larger.subarray(0, 50 * KiB))
  ws.flush()
  t.equal(larger.length, 100 * KiB)
  t.equal(ws.sent[0]?.length, 50 * KiB)
})

t.test('messages are read in order, whenever their reader pauses', async (t) => {
  const ws = new FakeWebSocket()
  const stream = websocketReadable(ws satisfies BinaryWebSocket)
  const random = seeded(5)
  const read: Buffer[] = []
  let sent = 0
  const send = () => {
    for (let left = Math.floor(random() * 4); left > 0 && !ws.isPaused; left--)
      ws.emit('message', Buffer.from(`${sent++} `), true)
  }
  send()
  stream.on('data', (piece: Buffer) => {
    read.push(piece)
    if (random() < 0.3) stream.pause()
  })
  for (let turn = 0; turn < 1000; turn++) {
    send()
    if (random() < 0.3) stream.resume()
    if (random() < 0.5) send()
    if (random() < 0.5) await immediate()
  }
  const ended = once(stream, 'end')
  ws.terminate()
  stream.removeAllListeners('data').on('data', (piece: Buffer) => read.push(piece))
  stream.resume()
  await ended
  t.ok(sent > 1000)
  t.equal(Buffer.concat(read).toString(), Array.from({ length: sent }, (_, at) => `${at} `).join(''))
})

t.test('one that nobody reads holds up its peer, and goes on with its reader', async (t) => {
  const ws = new FakeWebSocket()
  const stream = websocketReadable(ws satisfies BinaryWebSocket)
  let sent = 0
  while (!ws.isPaused) {
    ws.emit('message', bytes(KiB, 'x'), true)
    sent++
  }
  t.equal(sent, 256)
  stream.on('data', () => undefined)
  await immediate()
  t.equal(ws.isPaused, false)
  for (let more = 0; more < 1000; more++) ws.emit('message', bytes(KiB, 'x'), true)
  t.equal(ws.isPaused, false)
  stream.pause()
  for (; !ws.isPaused; sent++) ws.emit('message', bytes(KiB, 'x'), true)
  t.equal(sent, 512)
})
