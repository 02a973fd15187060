// The byte stream over a WebSocket: order, memory and back-pressure.
import { setImmediate as immediate } from 'node:timers/promises'
import t from 'tap'
import { type BinaryWebSocket, WebSocketDuplex } from '../../shared/websocket-duplex.ts'
import { createSeededRandom } from '../support/random.ts'

/** Queues messages until flush(). */
class FakeWebSocket {
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
}

function open() {
  const ws = new FakeWebSocket()
  return { ws, duplex: new WebSocketDuplex(ws satisfies BinaryWebSocket) }
}
const KiB = 1024
const bytes = (size: number, fill: string) => Buffer.alloc(size, fill)

t.test('sends writes completely and in order', async (t) => {
  const { ws, duplex } = open()
  duplex.write(bytes(40 * KiB, 'a'))
  // These wait for the first write and are sent as one message.
  duplex.write(bytes(20 * KiB, 'b'))
  duplex.write(bytes(20 * KiB, 'c'))
  ws.flush()
  // Too large to be copied into one message.
  duplex.write(bytes(60 * KiB, 'd'))
  duplex.write(bytes(60 * KiB, 'e'))
  ws.flush()
  ws.flush()
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

t.test('does not detach a view of a larger buffer', async (t) => {
  const { ws, duplex } = open()
  const larger = bytes(100 * KiB, 'x')
  duplex.write(larger.subarray(0, 50 * KiB))
  ws.flush()
  t.equal(larger.length, 100 * KiB)
  t.equal(ws.sent[0]?.length, 50 * KiB)
})

t.test('reads messages in order when the reader pauses and resumes', async (t) => {
  const { ws, duplex: stream } = open()
  const random = createSeededRandom(5)
  const read: Buffer[] = []
  let sent = 0
  const send = () => {
    for (let count = Math.floor(random() * 4); count > 0 && !ws.isPaused; count--)
      stream.receive(Buffer.from(`${sent++} `))
  }
  send()
  stream.on('data', (chunk: Buffer) => {
    read.push(chunk)
    if (random() < 0.3) stream.pause()
  })
  for (let round = 0; round < 1000; round++) {
    send()
    if (random() < 0.3) stream.resume()
    if (random() < 0.5) send()
    if (random() < 0.5) await immediate()
  }
  stream.removeAllListeners('data').on('data', (chunk: Buffer) => read.push(chunk))
  stream.resume()
  while (stream.readableLength > 0) await immediate()
  t.ok(sent > 1000)
  t.equal(Buffer.concat(read).toString(), Array.from({ length: sent }, (_, index) => `${index} `).join(''))
})

t.test('pauses the WebSocket while the reader is paused, and resumes with it', async (t) => {
  const { ws, duplex: stream } = open()
  let sent = 0
  while (!ws.isPaused) {
    stream.receive(bytes(KiB, 'x'))
    sent++
  }
  t.equal(sent, 256)
  stream.on('data', () => undefined)
  await immediate()
  t.equal(ws.isPaused, false)
  for (let count = 0; count < 1000; count++) stream.receive(bytes(KiB, 'x'))
  t.equal(ws.isPaused, false)
  stream.pause()
  for (; !ws.isPaused; sent++) stream.receive(bytes(KiB, 'x'))
  t.equal(sent, 512)
})
