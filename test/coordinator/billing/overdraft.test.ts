// What a saved card is trusted with, what it pays at once, and how much a workspace can owe that creates every box it may.
import t from 'tap'
import { decideBilling } from '../../../coordinator/admission/decide-billing.ts'
import type { AdmissionFacts } from '../../../coordinator/admission/facts.ts'
import { evaluateBalance } from '../../../coordinator/billing/evaluate.ts'
import {
  collectionOf,
  hasWorkingCard,
  isCardTrusted,
  overdraftOf,
} from '../../../coordinator/billing/overdraft.ts'
import { createBillingFacts } from '../../support/billing-facts.ts'

const DOLLAR = 1_000_000
const HOUR_MS = 3_600_000
const NOW = Date.UTC(2030, 0, 1)
const MAX = 100 * DOLLAR

const NO_CARD = {
  payment_method_id: null as string | null,
  payment_failed_at: null as number | null,
  payment_grace_until: null as number | null,
  card_paid_micros: 0,
}
const CARD = { ...NO_CARD, payment_method_id: 'pm', card_paid_micros: 25 * DOLLAR }
const FAILED = { ...CARD, payment_failed_at: NOW - 1, payment_grace_until: NOW + 72 * HOUR_MS }

t.test('a card is trusted until the grace of a failed payment ends', async (t) => {
  const describe = (account: typeof NO_CARD, now = NOW) => ({
    isWorking: hasWorkingCard(account),
    isTrusted: isCardTrusted(account, now),
    overdraft: overdraftOf(account, { maxMicros: MAX, now }) / DOLLAR,
  })
  t.same(describe(NO_CARD), { isWorking: false, isTrusted: false, overdraft: 0 })
  t.same(describe(CARD), { isWorking: true, isTrusted: true, overdraft: 25 })
  t.same(describe(FAILED), { isWorking: false, isTrusted: true, overdraft: 25 })
  const end = FAILED.payment_grace_until
  t.same(describe(FAILED, end), { isWorking: false, isTrusted: false, overdraft: 0 }, 'the grace has ended')
  const removed = { ...FAILED, payment_method_id: null }
  t.same(describe(removed), { isWorking: false, isTrusted: false, overdraft: 0 })
})

t.test('the overdraft is what the card has paid, up to the maximum', async (t) => {
  const overdraft = (paid: number, maxMicros: number) =>
    overdraftOf({ ...CARD, card_paid_micros: paid * DOLLAR }, { maxMicros, now: NOW }) / DOLLAR
  t.same(
    [0, 5, 25, 99.99, 100, 5000].map((paid) => overdraft(paid, MAX)),
    [0, 5, 25, 99.99, 100, 100],
  )
  t.equal(overdraft(5000, 0), 0, 'the operator lets nobody owe anything')
})

t.test('a card pays what the boxes cost in four hours, at least the amount of the operator', async (t) => {
  const collect = (dollarsPerHour: number, starting = 0) =>
    collectionOf(
      { burnMicrosPerHour: dollarsPerHour * DOLLAR, reservedMicrosPerHour: starting * DOLLAR },
      20 * DOLLAR,
    ) / DOLLAR
  t.same(
    [0, 0.04, 5, 5.001, 12.16, 25, 640].map((rate) => collect(rate)),
    [20, 20, 20, 20.01, 48.64, 100, 1000],
    'in whole cents, and at most the largest payment',
  )
  t.equal(collect(6, 4), 40, 'with the boxes that start')
})

/** A workspace whose card has paid once, and which creates all boxes that are admitted, every hour. Returns the most that it owes. */
function findLargestDebt(paid: number, maxMicros: number): { boxes: number; debt: number } {
  const rate = 640_000
  const grace = NOW + 72 * HOUR_MS
  let [balanceMicros, now, boxes, failedAt] = [paid, NOW, 0, null as number | null]
  const account = () => ({
    ...CARD,
    card_paid_micros: paid,
    payment_failed_at: failedAt,
    payment_grace_until: failedAt === null ? null : grace,
  })
  for (;;) {
    const overdraftMicros = overdraftOf(account(), { maxMicros, now })
    const funds = () => ({
      balanceMicros,
      overdraftMicros: hasWorkingCard(account()) ? overdraftMicros : 0,
      burnMicrosPerHour: boxes * rate,
    })
    const mayCreate = () => {
      const facts = { billing: createBillingFacts(funds()) } as AdmissionFacts
      return decideBilling({ action: 'restore', tier: 'ultra', imageNames: [] }, facts) === null
    }
    while (mayCreate()) boxes += 1
    const burnMicrosPerHour = boxes * rate
    const rates = { burnMicrosPerHour, reservedMicrosPerHour: 0 }
    // Every payment is declined.
    if (balanceMicros < collectionOf(rates, 20 * DOLLAR)) failedAt ??= now
    const card = isCardTrusted(account(), now) ? { overdraftMicros } : null
    const state = evaluateBalance({ balanceMicros, burnMicrosPerHour }, { now, warnBelowHours: 24, card })
    if (state.isEmpty) return { boxes, debt: -balanceMicros }
    balanceMicros -= (burnMicrosPerHour * (state.nextAt - now)) / HOUR_MS
    now = state.nextAt
  }
}

t.test('a workspace owes at most what its card has paid, whatever it creates', async (t) => {
  for (const paid of [5, 25, 100, 1000]) {
    const { boxes, debt } = findLargestDebt(paid * DOLLAR, MAX)
    const limit = Math.min(paid, 100)
    t.ok(boxes > 0, `${boxes} boxes for $${paid}`)
    t.ok(boxes * 0.64 * 4 <= paid + limit, `$${paid}: ${boxes} boxes`)
    // The balance is evaluated a second after the limit is reached.
    t.ok(debt <= limit * DOLLAR + (boxes * 640_000 * 2) / 3600, `$${paid}: owes ${debt / DOLLAR}`)
  }
})
