// The ring of a terminal's last output, addressed by offset.
import t from 'tap'
import { createOutputRing } from '../../../agent/terminal/output-ring.ts'
import { createSeededRandom } from '../../support/random.ts'

const MAX_BYTES = 16_384
const PERIOD = 251
const PATTERN = Buffer.from(Array.from({ length: PERIOD + 40_000 }, (_, index) => index % PERIOD))
/** The byte of an offset is the offset modulo the period. */
const numbered = (offset: number, length: number) =>
  PATTERN.subarray(offset % PERIOD, (offset % PERIOD) + length)

t.test('returns the bytes of every retained offset', async (t) => {
  const random = createSeededRandom(1)
  for (const maxChunk of [10, 5_000, 40_000]) {
    const ring = createOutputRing(MAX_BYTES)
    for (let end = 0; end < 200_000; ) {
      const length = Math.floor(random() * maxChunk)
      ring.push(numbered(end, length))
      end += length
      if (ring.end() !== end) t.fail(`ends at ${ring.end()}, not at ${end}`)
      if (ring.start() !== Math.max(0, end - MAX_BYTES) && ring.start() !== 0)
        t.fail('retains the last bytes')
      const offset = ring.start() + Math.floor(random() * (end - ring.start()))
      const bytes = ring.read(offset, 3_000)
      if (!bytes.equals(numbered(offset, Math.min(3_000, end - offset)))) t.fail(`bytes from ${offset}`)
    }
    t.equal(ring.start(), ring.end() - MAX_BYTES)
  }
})

t.test('returns nothing outside of the retained bytes', async (t) => {
  const ring = createOutputRing(MAX_BYTES)
  t.equal(ring.read(0, 10).length, 0)
  ring.push(Buffer.alloc(MAX_BYTES + 1))
  t.equal(ring.read(0, 10).length, 0)
  t.equal(ring.read(ring.end(), 10).length, 0)
})

t.test('continues at the offset of an earlier ring', async (t) => {
  const first = 1_000_003
  const ring = createOutputRing(MAX_BYTES, first)
  t.same([ring.start(), ring.end(), ring.read(0, 10).length], [first, first, 0])
  for (let end = first; end < first + 100_000; end += 3_000) {
    ring.push(numbered(end, 3_000))
    t.ok(ring.read(ring.end() - 2_000, 5_000).equals(numbered(end + 1_000, 2_000)), `${end}`)
  }
  t.equal(ring.start(), ring.end() - MAX_BYTES)
  t.equal(ring.read(ring.start() - 1, 10).length, 0)
})
