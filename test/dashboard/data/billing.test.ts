// Billing as text in the dashboard.
import t from 'tap'
import {
  describePayment,
  describePlan,
  describeRunway,
  forecastMonth,
  formatHours,
  formatMicros,
  formatPrice,
  listBars,
  listMonths,
  parseAmount,
  roundUp,
} from '../../../dashboard/data/billing.ts'
import { formatDollars, formatPrice as formatSharedPrice } from '../../../shared/format-dollars.ts'

t.test('amounts, like those of box', async (t) => {
  for (const micros of [0, 1, 137, 9_999, 10_000, 4_200_000, -50_000, -1, 1_234_567_890])
    t.same([formatMicros(micros), formatPrice(micros)], [formatDollars(micros), formatSharedPrice(micros)])
  t.same([1, -1, 9_999, 10_000, 4_200_000].map(formatDollars), [
    '<$0.01',
    '-<$0.01',
    '<$0.01',
    '$0.01',
    '$4.20',
  ])
  t.same([0, 137, 1_370, 10_000, 20_000, 99_999, 1_230_000].map(formatSharedPrice), [
    '$0.00',
    '$0.000137',
    '$0.00137',
    '$0.01',
    '$0.02',
    '$0.10',
    '$1.23',
  ])
  t.same(['25', '$25.50', ' 0.01 ', '0', '-1', '1e3', '25.001', '', 'x', '123456'].map(parseAmount), [
    25,
    25.5,
    0.01,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
  ])
  t.equal(parseAmount(undefined), null)
})

t.test('what a month will cost', async (t) => {
  const day = (date: number, micros: number, parts: { id: string; micros: number }[] = []) => ({
    day: `2030-02-${String(date).padStart(2, '0')}`,
    computeSeconds: 0,
    micros,
    parts,
  })
  const month = '2030-02'
  const forecast = (date: number, hourlyMicros: number) =>
    forecastMonth({ month, totalMicros: 1_000 }, hourlyMicros, Date.UTC(2030, 1, date))
  t.equal(forecast(28, 10), 1_240, 'a day is left')
  t.equal(forecast(1, 0), 1_000)
  t.equal(forecast(29, 10), null, 'the month is over')

  const rows = ['a', 'b'].map((id) => ({ id, name: id, micros: 0, computeSeconds: 0 }))
  const parts = [
    { id: 'b', micros: 3 },
    { id: 'a', micros: 0 },
    { id: 'of another member', micros: 2 },
  ]
  const bars = listBars({ month, days: [day(2, 10, parts)], rows })
  t.equal(bars.length, 28)
  t.same(bars.slice(0, 2), [
    { day: '2030-02-01', micros: 0, parts: [] },
    {
      day: '2030-02-02',
      micros: 10,
      parts: [
        { row: 1, micros: 3 },
        { row: null, micros: 7 },
      ],
    },
  ])
  t.same([0, 1, 3, 4, 4.5, 5.1, 99, 2_500_000].map(roundUp), [1, 1, 4, 4, 5, 10, 100, 4_000_000])
})

t.test('times', async (t) => {
  t.same([0, 0.5, 1, 1.75, 24, 105.02].map(formatHours), [
    '0 min',
    '30 min',
    '1 h 0 min',
    '1 h 45 min',
    '1 d 0 h',
    '4 d 9 h',
  ])
  const now = Date.UTC(2030, 1, 3, 5)
  t.same(listMonths(now).slice(0, 3), ['2030-02', '2030-01', '2029-12'])
  t.equal(listMonths(now).length, 12)
})

t.test('the runway and the payments', async (t) => {
  const balance = { balanceMicros: 1, runwayHours: 105, warnBelowHours: 24, overdraftMicros: 0 }
  t.equal(describeRunway(balance), '4 d 9 h')
  t.equal(describeRunway({ ...balance, runwayHours: 2 }), '2 h 0 min, then the boxes are suspended')
  t.match(describeRunway({ ...balance, runwayHours: null }), 'Nothing is charged')
  t.match(describeRunway({ ...balance, balanceMicros: 0 }), 'boxes are suspended')
  const owed = { ...balance, overdraftMicros: 25_000_000 }
  t.match(describeRunway({ ...owed, balanceMicros: -1 }), 'until you owe $25.00')
  t.match(describeRunway({ ...owed, balanceMicros: -25_000_000 }), 'boxes are suspended')
  const plan = { name: 'free' as const, boxes: 1, snapshots: 5, secrets: 10, terminals: 4, tiers: [] }
  t.equal(describePlan(plan), '1 box, 5 snapshots, 10 secrets')
  t.match(describePlan({ ...plan, boxes: 1000 }), '1000 boxes')
  const payment = {
    provider: 'stripe' as const,
    paymentFailed: false,
    paymentGraceUntil: null,
    overdraftMicros: 25_000_000,
    collecting: false,
    hasCard: false,
  }
  t.match(describePayment(payment), 'There is no card')
  t.match(describePayment({ ...payment, hasCard: true }), 'You may owe $25.00')
  t.match(describePayment({ ...payment, provider: 'manual' }), 'operator')
  t.match(describePayment({ ...payment, collecting: true }), 'in progress')
  t.match(describePayment({ ...payment, paymentFailed: true }), /has failed\.$/)
  t.match(
    describePayment({ ...payment, paymentFailed: true, paymentGraceUntil: '2030-01-01T00:00:00Z' }),
    /until 2030.*, or until you owe \$25\.00\./,
  )
})
