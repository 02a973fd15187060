// The file of the prices, the times at which prices change, and costs that do not depend on how time is divided.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  DEFAULT_PRICES,
  type PriceTable,
  pricesAt,
  rateOf,
  readPrices,
  splitAtPriceChanges,
} from '../../../coordinator/billing/prices.ts'
import { costOf, splitAtHours } from '../../../coordinator/billing/usage.ts'
import { TIER_NAMES } from '../../../shared/tiers.ts'
import { createSeededRandom } from '../../support/random.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const [{ compute } = { compute: {} }] = DEFAULT_PRICES
const ENTRY = { from: '2030-01-01T00:00:00Z', compute, diskGb: 137, snapshotGb: 137 }

t.test('the file of BOXWOOD_PRICES', async (t) => {
  const file = join(createTempDir(t, 'prices'), 'prices.json')
  const read = (content: unknown) => {
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return readPrices(file)
  }
  const later = { ...ENTRY, from: '2030-02-01T00:00:00+01:00', diskGb: 0 }
  t.same(
    read([ENTRY, later]).map(({ from, diskGb }) => [from, diskGb]),
    [
      [Date.UTC(2030, 0, 1) / 1000, 137],
      [Date.UTC(2030, 0, 31, 23) / 1000, 0],
    ],
  )
  const problems: [unknown, RegExp][] = [
    ['{', /^The file of BOXWOOD_PRICES cannot be read: .*JSON/],
    [[], /^The prices in .*prices\.json are not valid: .*`box docs billing` has an example\.$/],
    [[later, ENTRY], /must be in the order of from, and each from must occur once/],
    [[ENTRY, ENTRY], /must be in the order of from, and each from must occur once/],
    [[{ ...ENTRY, compute: { ...compute, huge: 1 } }], /huge/],
    [[{ ...ENTRY, compute: { nano: 1 } }], /micro/],
    [[{ ...ENTRY, diskGb: 0.5 }], /diskGb/],
    [[{ ...ENTRY, diskGb: -1 }], /diskGb/],
    [[{ ...ENTRY, from: '2030-01-01' }], /from/],
  ]
  for (const [content, message] of problems) t.throws(() => read(content), { message })
  t.throws(() => readPrices(join(file, 'absent')), {
    message: /^The file of BOXWOOD_PRICES cannot be read: /,
  })
})

const TABLE: PriceTable = [100, 200, 201, 5000].map((from, index) => ({
  from,
  compute: Object.fromEntries(
    TIER_NAMES.map((tier, position) => [tier, 7001 * (index + 1) + 13 * position]),
  ) as PriceTable[number]['compute'],
  diskGb: 137 + index,
  snapshotGb: 139 * index,
}))

t.test('an interval is divided where the prices change', async (t) => {
  const split = (since: number, until: number) =>
    splitAtPriceChanges(TABLE, since, until).map(({ seconds, prices }) => [seconds, prices.from])
  t.same(split(0, 50), [[50, 100]], 'the first prices apply before too')
  t.same(split(0, 100), [[100, 100]])
  t.same(split(100, 200), [[100, 100]], 'a change at the limits does not divide')
  t.same(split(150, 250), [
    [50, 100],
    [1, 200],
    [49, 201],
  ])
  t.same(split(6000, 6001), [[1, 5000]])
  t.equal(pricesAt(TABLE, 200).from, 200, 'the new price applies in its first second')
  t.equal(pricesAt(TABLE, 199).from, 100)
})

t.test('the cost does not depend on how the time is divided', async (t) => {
  const random = createSeededRandom(1)
  const integer = (max: number) => Math.floor(random() * max)
  for (let round = 0; round < 300; round++) {
    const mode = (['compute', 'disk', 'snapshot', 'waking', 'launching'] as const)[integer(5)] ?? 'disk'
    const rated = { mode, tier: TIER_NAMES[integer(7)] ?? 'nano', megabytes: integer(1_000_000) }
    const [since, length, first] = [integer(8000), 1 + integer(20_000), integer(3_600_000)]
    const whole = costOf({ ...rated, since, until: since + length }, first, TABLE)
    const limits = [since, since + length]
    for (let count = integer(20); count > 0; count--) limits.push(since + integer(length + 1))
    limits.sort((a, b) => a - b)
    let [micros, carry] = [0, first]
    for (const [index, until] of limits.slice(1).entries())
      for (const part of splitAtHours({ ...rated, since: limits[index] ?? 0, until })) {
        const cost = costOf(part, carry, TABLE)
        micros += cost.micros
        carry = cost.carry
        t.ok(carry >= 0 && carry < 3_600_000 && Number.isSafeInteger(cost.micros))
      }
    t.same({ micros, carry }, whole, `round ${round}`)
    let units = BigInt(first)
    for (let second = since; second < since + length; second++)
      units += BigInt(rateOf(rated, pricesAt(TABLE, second)))
    t.equal(BigInt(whole.micros) * 3_600_000n + BigInt(whole.carry), units, 'the sum of the seconds')
  }
})
