// The tail of a stream: whole characters, whatever the chunks and wherever the cut.
import t from 'tap'
import { createOutputTail } from '../../../agent/exec/output-tail.ts'

function tailOf(limit: number, bytes: Buffer, chunk: number) {
  const tail = createOutputTail(limit)
  for (let at = 0; at < bytes.length; at += chunk) tail.push(bytes.subarray(at, at + chunk))
  return tail
}

t.test('nothing at all', async (t) => {
  const tail = createOutputTail(8)
  t.equal(tail.text(), '')
  t.equal(tail.truncated(), false)
})

t.test('the last bytes, in any chunks', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 20_000 }, (_, index) => 97 + (index % 26)))
  for (const limit of [1, 7, 4096, 5000, 19_999, 20_000, 20_001]) {
    for (const chunk of [1, 3, 4096, 6000, 20_000]) {
      const tail = tailOf(limit, bytes, chunk)
      t.equal(tail.text(), bytes.toString('latin1').slice(-limit), `${limit} of chunks of ${chunk}`)
      t.equal(tail.truncated(), limit < bytes.length)
    }
  }
})

t.test('a chunk may be used again after it was pushed', async (t) => {
  const chunk = Buffer.from('ab')
  const tail = createOutputTail(8)
  tail.push(chunk)
  chunk.fill('x')
  t.equal(tail.text(), 'ab')
})

t.test('a halved character is left out, at every cut', async (t) => {
  for (const character of ['é', '€', '😀', '\u{10ffff}']) {
    const text = `${character.repeat(10)}end`
    const bytes = Buffer.from(text)
    for (let limit = 3; limit <= bytes.length; limit++) {
      const whole = Math.floor((limit - 3) / Buffer.byteLength(character))
      t.equal(tailOf(limit, bytes, 5).text(), `${character.repeat(whole)}end`, `${character} cut to ${limit}`)
    }
  }
})

t.test('bytes that never were a character are not hidden', async (t) => {
  const cut = (bytes: number[], limit: number) => tailOf(limit, Buffer.from(bytes), 2).text()
  t.equal(cut([0x61, 0x80, 0x80, 0x62], 3), '\ufffd\ufffdb', 'a letter before them')
  t.equal(cut([0x80, 0x80, 0x80, 0x80, 0x80, 0x62], 3), '\ufffd\ufffdb', 'no lead within reach')
  t.equal(cut([0xe2, 0x82, 0x62, 0x62], 2), 'bb', 'a broken one before the cut')
  t.equal(cut([0xe2, 0x82, 0x62, 0x62], 3), '\ufffdbb', 'one that was broken before it was cut')
  t.equal(cut([0xc3, 0xa9, 0x80, 0x62], 2), '\ufffdb', 'one byte too many after a character')
  t.equal(cut([0xff, 0x80, 0x62, 0x62], 3), '\ufffdbb', 'no lead at all')
})
