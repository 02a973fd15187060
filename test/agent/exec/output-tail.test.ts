// The output tail: the last bytes of a stream, as whole characters, for any chunk sizes.
import t from 'tap'
import { createOutputTail } from '../../../agent/exec/output-tail.ts'

function createTail(limit: number, bytes: Buffer, chunkBytes: number) {
  const tail = createOutputTail(limit)
  for (let at = 0; at < bytes.length; at += chunkBytes) tail.push(bytes.subarray(at, at + chunkBytes))
  return tail
}

t.test('is empty without output', async (t) => {
  const tail = createOutputTail(8)
  t.equal(tail.text(), '')
  t.equal(tail.truncated(), false)
})

t.test('retains the last bytes, in chunks of any size', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 20_000 }, (_, index) => 97 + (index % 26)))
  for (const limit of [1, 7, 4096, 5000, 19_999, 20_000, 20_001]) {
    for (const chunkBytes of [1, 3, 4096, 6000, 20_000]) {
      const tail = createTail(limit, bytes, chunkBytes)
      t.equal(
        tail.text(),
        bytes.toString('latin1').slice(-limit),
        `limit ${limit}, chunks of ${chunkBytes} bytes`,
      )
      t.equal(tail.truncated(), limit < bytes.length)
    }
  }
})

t.test('copies the chunk', async (t) => {
  const chunk = Buffer.from('ab')
  const tail = createOutputTail(8)
  tail.push(chunk)
  chunk.fill('x')
  t.equal(tail.text(), 'ab')
})

t.test('leaves out a split character, at every limit', async (t) => {
  for (const character of ['é', '€', '😀', '\u{10ffff}']) {
    const text = `${character.repeat(10)}end`
    const bytes = Buffer.from(text)
    for (let limit = 3; limit <= bytes.length; limit++) {
      const whole = Math.floor((limit - 3) / Buffer.byteLength(character))
      t.equal(
        createTail(limit, bytes, 5).text(),
        `${character.repeat(whole)}end`,
        `${character}, limit ${limit}`,
      )
    }
  }
})

t.test('shows invalid bytes as U+FFFD', async (t) => {
  const truncate = (bytes: number[], limit: number) => createTail(limit, Buffer.from(bytes), 2).text()
  t.equal(truncate([0x61, 0x80, 0x80, 0x62], 3), '\ufffd\ufffdb', 'continuation bytes after a letter')
  t.equal(truncate([0x80, 0x80, 0x80, 0x80, 0x80, 0x62], 3), '\ufffd\ufffdb', 'too many continuation bytes')
  t.equal(truncate([0xe2, 0x82, 0x62, 0x62], 2), 'bb', 'an incomplete character before the tail')
  t.equal(truncate([0xe2, 0x82, 0x62, 0x62], 3), '\ufffdbb', 'an incomplete character that the limit splits')
  t.equal(truncate([0xc3, 0xa9, 0x80, 0x62], 2), '\ufffdb', 'an extra continuation byte after a character')
  t.equal(truncate([0xff, 0x80, 0x62, 0x62], 3), '\ufffdbb', 'a byte that is never valid')
})
