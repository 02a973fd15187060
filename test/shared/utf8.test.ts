// Splitting UTF-8 bytes without splitting a character.
import t from 'tap'
import { incompleteSuffixLength } from '../../shared/utf8.ts'
import { createSeededRandom, randomMalformedUtf8 } from '../support/random.ts'

t.test('bytes that are decoded in pieces result in the same text as decoded at once', async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 20_260_801)
  const random = createSeededRandom(seed)
  for (let round = 0; round < 3000; round++) {
    const bytes = randomMalformedUtf8(random, 1 + Math.floor(random() * 40))
    let text = ''
    let from = 0
    for (let to = 0; to < bytes.length; ) {
      to = Math.min(bytes.length, to + 1 + Math.floor(random() * 6))
      const available = bytes.subarray(from, to)
      const incomplete = to === bytes.length ? 0 : incompleteSuffixLength(available)
      text += available.toString('utf8', 0, available.length - incomplete)
      from = to - incomplete
    }
    if (text !== bytes.toString('utf8'))
      return t.fail(`seed ${seed}, round ${round}: ${bytes.toString('hex')}`)
  }
  t.pass()
})

t.test('an incomplete suffix contains only bytes that can become a character', async (t) => {
  const measure = (...bytes: number[]) => incompleteSuffixLength(Buffer.from(bytes))
  t.equal(measure(), 0)
  t.equal(measure(0x61), 0)
  t.equal(measure(0xf0), 1)
  t.equal(measure(0x61, 0xf0, 0x9f), 2)
  t.equal(measure(0xf0, 0x9f, 0x98), 3)
  t.equal(measure(0xf0, 0x9f, 0x98, 0x80), 0, 'a complete character')
  t.equal(measure(0xe2, 0x82), 2)
  t.equal(measure(0xff), 0, 'an invalid byte')
  t.equal(measure(0x80, 0x80), 0, 'continuation bytes without a first byte')
  t.equal(measure(0xe0, 0x80), 0, 'an overlong form')
  t.equal(measure(0xed, 0xa0), 0, 'a surrogate')
  t.equal(measure(0xf4, 0x90), 0, 'above U+10FFFF')
})
