// The first names of a directory are found in bounded memory.
import t from 'tap'
import { SmallestNames } from '../../../agent/files/smallest-names.ts'

/** All numbers below 2^17 in an order without a pattern: an odd multiplier permutes them. */
const COUNT = 2 ** 17
const nameOf = (index: number) => Buffer.from(String((index * 40_503) % COUNT).padStart(6, '0'))

t.test('pages have all names once, and few are in memory', async (t) => {
  let after: Buffer | null = null
  let seen = 0
  for (;;) {
    const names = new SmallestNames(30_000, after)
    let most = 0
    for (let index = 0; index < COUNT; index++) {
      names.add(nameOf(index))
      most = Math.max(most, names.size)
    }
    const page = names.toSorted()
    if (page.length === 0) break
    t.ok(most < 60_000, `${most} names in memory`)
    for (const name of page) if (Number(name.toString()) !== seen++) return t.fail(`${name} at ${seen - 1}`)
    after = page.at(-1) ?? null
  }
  t.equal(seen, COUNT)
})

t.test('names are sorted by their bytes', async (t) => {
  const names = new SmallestNames(10, null)
  for (const name of ['é', 'z', 'A', '\u{1f600}', '\ufffd']) names.add(Buffer.from(name))
  names.add(Buffer.from([0xff]))
  t.same(
    names.toSorted().map((name) => name.toString('hex')),
    ['41', '7a', 'c3a9', 'efbfbd', 'f09f9880', 'ff'],
  )
})
