// Counting HTTP/2 frames, whatever the sizes of the chunks.
import t from 'tap'
import { createHttp2FrameCounter } from '../../../../coordinator/agents/tunnel/http2-frame-counter.ts'

const frame = (length: number) =>
  Buffer.concat([Buffer.from([0, length >> 8, length & 255]), Buffer.alloc(6 + length)])
const LENGTHS = [0, 0, 1, 8, 9, 300, 0, 5000, 3]

t.test('counts each frame once, for every size of the chunks', async (t) => {
  const bytes = Buffer.concat(LENGTHS.map(frame))
  for (let size = 1; size < 700; size += size < 30 ? 1 : 97) {
    const count = createHttp2FrameCounter()
    let frames = 0
    for (let at = 0; at < bytes.length; at += size) frames += count(bytes.subarray(at, at + size))
    t.equal(frames, LENGTHS.length, `chunks of ${size} bytes`)
  }
  const count = createHttp2FrameCounter()
  t.equal(count(bytes), LENGTHS.length)
  t.equal(count(Buffer.alloc(0)), 0)
  t.equal(count(frame(2)), 1)
})
