// The frames between the agent and a terminal host, in parts and from a hostile host.
import t from 'tap'
import {
  createFrameReader,
  encodeInput,
  encodeStoreScreen,
  type HostFrame,
  MAX_FRAME_BYTES,
} from '../../../../agent/terminal/host/frames.ts'
import { encodeFrame, encodeHello, offsets } from './support.ts'

const readAll = (bytes: Buffer, chunkBytes: number): HostFrame[] => {
  const reader = createFrameReader()
  const frames: HostFrame[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes)
    frames.push(...reader.read(bytes.subarray(at, at + chunkBytes)))
  return frames
}

t.test('frames are read from chunks of any size', async (t) => {
  const bytes = Buffer.concat([
    encodeFrame(1, offsets(7), Buffer.from('client-a')),
    encodeHello({ start: 5, end: 9, cols: 80, rows: 24 }),
    encodeFrame(4, offsets(5), Buffer.from('text')),
    encodeFrame(5),
    encodeFrame(6, Buffer.from([3, 0, 0, 0, 0, 0, 0, 0]), offsets(1000)),
  ])
  const expected = [
    { type: 'client', id: 'client-a', accepted: 7 },
    { type: 'hello', version: 1, start: 5, end: 9, cols: 80, rows: 24, isWriting: false, hasExited: false },
    { type: 'output', offset: 5, bytes: Buffer.from('text') },
    { type: 'written' },
    { type: 'exit', exitCode: 3, signal: 0, finishedAt: 1000 },
  ]
  for (const chunkBytes of [1, 3, 7, 20, 1000]) t.same(readAll(bytes, chunkBytes), expected, `${chunkBytes}`)
})

t.test('a stored screen is read back', async (t) => {
  const screen = { offset: 123, cols: 90, rows: 30, bytes: Buffer.from('screen') }
  // The type of the frame is the only difference between the directions.
  const frame = encodeStoreScreen(screen) ?? Buffer.alloc(0)
  frame[4] = 2
  t.same(readAll(frame, 1000), [{ type: 'screen', screen }])
  t.equal(encodeStoreScreen({ ...screen, bytes: Buffer.alloc(MAX_FRAME_BYTES) }), null)
})

t.test('invalid frames are refused', async (t) => {
  const length = (bytes: number) => {
    const head = Buffer.alloc(4)
    head.writeUInt32LE(bytes)
    return head
  }
  const invalid = {
    'an empty frame': length(0),
    'a frame that is too long': length(MAX_FRAME_BYTES + 1),
    'a type of the other direction': encodeInput({ client: 'a', offset: 0, bytes: Buffer.from('x') }),
    'an unknown type': encodeFrame(99),
    'a hello without a size': encodeFrame(3, Buffer.from([1]), offsets(0, 0)),
    'a size of zero': encodeHello({ start: 0, end: 0, cols: 0, rows: 24 }),
    'an end before the start': encodeHello({ start: 9, end: 5, cols: 80, rows: 24 }),
    'more output than a host holds': encodeHello({ start: 0, end: 2 ** 30, cols: 80, rows: 24 }),
    'another version': encodeHello({ start: 0, end: 0, cols: 80, rows: 24, version: 2 }),
    'an id that is too long': encodeFrame(1, offsets(0), Buffer.alloc(65, 'a')),
    'an offset that is too large': encodeFrame(4, Buffer.alloc(8, 0xff), Buffer.from('x')),
    'an exit code that is too large': encodeFrame(6, Buffer.from([0, 1, 0, 0, 0, 0, 0, 0]), offsets(0)),
  }
  for (const [name, bytes] of Object.entries(invalid)) t.throws(() => readAll(bytes, 1000), Error, name)
})
