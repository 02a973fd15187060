// The prices and plans in docs/billing.md are those of the program.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PLANS } from '../../../coordinator/billing/plans.ts'
import { DEFAULT_PRICES, diskMicros, readPrices } from '../../../coordinator/billing/prices.ts'
import { TIER_NAMES } from '../../../shared/tiers.ts'
import { PROJECT_DIR } from '../../support/project.ts'

const page = readFileSync(join(PROJECT_DIR, 'docs/billing.md'), 'utf8')

/** Such as $0.01 or $0.00137. */
const toDollars = (micros: number): string =>
  `$${(micros / 1_000_000).toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')}`

t.test('the table has the default prices', async (t) => {
  const [prices] = DEFAULT_PRICES
  if (prices === undefined) throw new Error('there are no prices')
  for (const tier of TIER_NAMES) {
    const [running, disk] = [prices.compute[tier], diskMicros(tier, prices)].map(toDollars)
    t.ok(page.includes(`\n| ${tier} | ${running} | ${disk} |\n`), `${tier} ${running} ${disk}`)
  }
})

t.test('the example of a file of prices is valid, and begins with the default prices', async (t) => {
  const [, example = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []
  const file = join(t.testdir({ 'prices.json': example }), 'prices.json')
  const [first, second] = readPrices(file)
  t.match(first, { ...DEFAULT_PRICES[0], from: Date.UTC(2030, 0, 1) / 1000 })
  t.ok(second)
})

t.test('the table has the limits of the plans', async (t) => {
  const { free, paid } = PLANS
  const rows = {
    boxes: [free.boxes, paid.boxes],
    snapshots: [free.snapshots, paid.snapshots],
    secrets: [free.secrets, paid.secrets],
    'open terminals': [free.terminals, paid.terminals],
    'default tier': [free.defaultTier, paid.defaultTier],
    tiers: [free.tiers.join(', '), 'all'],
  }
  for (const [name, cells] of Object.entries(rows))
    t.ok(page.includes(`\n| ${name} | ${cells.join(' | ')} |\n`), `${name} ${cells}`)
})
