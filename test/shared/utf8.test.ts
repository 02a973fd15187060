import t from 'tap'
import { unfinishedBytes } from '../../shared/utf8.ts'
import { mixedBytes, seeded } from '../support/random.ts'

t.test('however bytes are cut, their text is that of the whole', async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 20_260_801)
  const random = seeded(seed)
  for (let round = 0; round < 3000; round++) {
    const bytes = mixedBytes(random, 1 + Math.floor(random() * 40))
    let text = ''
    let from = 0
    for (let to = 0; to < bytes.length; ) {
      to = Math.min(bytes.length, to + 1 + Math.floor(random() * 6))
      const seen = bytes.subarray(from, to)
      const held = to === bytes.length ? 0 : unfinishedBytes(seen)
      text += seen.toString('utf8', 0, seen.length - held)
      from = to - held
    }
    if (text !== bytes.toString('utf8'))
      return t.fail(`seed ${seed}, round ${round}: ${bytes.toString('hex')}`)
  }
  t.pass()
})

t.test('only what may become a character is held back', async (t) => {
  const held = (...bytes: number[]) => unfinishedBytes(Buffer.from(bytes))
  t.equal(held(), 0)
  t.equal(held(0x61), 0)
  t.equal(held(0xf0), 1)
  t.equal(held(0x61, 0xf0, 0x9f), 2)
  t.equal(held(0xf0, 0x9f, 0x98), 3)
  t.equal(held(0xf0, 0x9f, 0x98, 0x80), 0, 'a whole character')
  t.equal(held(0xe2, 0x82), 2)
  t.equal(held(0xff), 0, 'never valid')
  t.equal(held(0x80, 0x80), 0, 'continuations of nothing')
  t.equal(held(0xe0, 0x80), 0, 'an overlong form')
  t.equal(held(0xed, 0xa0), 0, 'half a surrogate pair')
  t.equal(held(0xf4, 0x90), 0, 'beyond Unicode')
})
