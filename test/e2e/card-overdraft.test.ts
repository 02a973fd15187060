// A saved card that pays once: how many boxes start, how much the workspace comes to owe, and what later payments change.
import t, { type Test } from 'tap'
import { BALANCE_SCHEDULE } from '../../coordinator/billing/service.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { STRIPE_ENV, startFakeStripe } from '../support/fake-stripe.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createTestClock } from '../support/workspace.ts'

const DOLLAR = 1_000_000
const ULTRA = 640_000
const HOUR_MS = 3_600_000

/** A coordinator whose clock stands still, with a workspace that has no boxes and no credit. */
async function start(t: Test, env: Record<string, string> = {}) {
  const clock = createTestClock(Math.floor(Date.now() / 1000) * 1000)
  const stripe = await startFakeStripe(t, clock)
  const coordinator = await startTestCoordinator(t, {
    clock,
    env: { ...STRIPE_ENV, BOXWOOD_FREE_CREDIT: '0', ...env },
    stripeApi: stripe.api,
  })
  const { api, instance } = coordinator
  const { db, scheduler } = instance.context
  const workspaceId = instance.owner?.workspaceId ?? ''
  const send = (type: string, object: object) => {
    const { payload, headers } = stripe.createEvent(type, object)
    return api('POST', '/billing/stripe/webhook', payload, { key: null, headers })
  }
  /** A payment that the owner has made on the page of Stripe. */
  async function pay(dollars: number, options: { savesCard?: boolean } = {}) {
    // The time identifies an attempt to charge the card.
    clock.advance(1000)
    const intent = stripe.addIntent({
      amount: String(dollars * 100),
      'metadata[boxwood_workspace]': workspaceId,
      ...(options.savesCard && { setup_future_usage: 'off_session' }),
    })
    await send('payment_intent.succeeded', intent)
    await settle()
    return intent
  }
  const readDueTime = async () => {
    const query = db.selectFrom('schedules').select('due_at').where('kind', '=', BALANCE_SCHEDULE)
    return (await query.executeTakeFirstOrThrow()).due_at
  }
  /** Waits until the balance has been evaluated at the time of the clock. */
  const settle = () =>
    waitUntil('the balance is evaluated', async () => {
      scheduler.runDue()
      return (await readDueTime()) > clock.now() || undefined
    })
  /** Advances the clock, and waits until the balance has been evaluated. Default: to the next evaluation. */
  async function advance(hours?: number) {
    clock.advance(hours === undefined ? (await readDueTime()) - clock.now() : hours * HOUR_MS)
    await settle()
  }
  const billing = async () => (await api('GET', '/me')).json.billing
  const create = (tier = 'ultra') => api('POST', '/boxes', { tier })
  const createAtOnce = async (count: number) => {
    const answers = await Promise.all(Array.from({ length: count }, () => create()))
    const created: string[] = answers.flatMap(({ json }) => json.box?.id ?? [])
    for (const id of created) await coordinator.waitForState(id, 'running')
    return { created, refused: answers.filter(({ status }) => status !== 202).map(({ json }) => json) }
  }
  const countRunning = async () => {
    const { boxes } = (await api('GET', '/boxes?live=1')).json
    return boxes.filter(({ desiredState }: { desiredState: string }) => desiredState === 'running').length
  }
  const amounts = () =>
    stripe.requests.filter(({ path }) => path === 'POST /v1/payment_intents').map(({ form }) => form.amount)
  return {
    ...{ coordinator, api, db, clock, stripe, send, pay, advance, billing, create, createAtOnce },
    ...{ countRunning, amounts },
  }
}

t.test('one payment of $25, and every later charge is declined', async (t) => {
  const { stripe, pay, advance, billing, create, createAtOnce, countRunning, amounts } = await start(t)
  stripe.outcome = 'declined'
  await pay(25, { savesCard: true })
  t.match(await billing(), { balanceMicros: 25 * DOLLAR, overdraftMicros: 25 * DOLLAR })

  const { created, refused } = await createAtOnce(24)
  t.equal(created.length, 19, 'four hours of 19 boxes cost $48.64')
  for (const json of refused)
    t.match(json, {
      error: 'insufficient_balance',
      balanceMicros: 25 * DOLLAR,
      requiredMicros: 4 * 20 * ULTRA,
    })

  await advance()
  t.same(amounts(), ['4864'], 'what the boxes cost in four hours, at once')
  const failed = await billing()
  t.match(failed, { paymentFailed: true, collecting: false, overdraftMicros: 25 * DOLLAR })
  t.ok(failed.balanceMicros > 0)
  t.match((await create('nano')).json, { error: 'insufficient_balance' }, 'nothing starts beyond the balance')
  t.equal(await countRunning(), 19, 'the boxes run on')

  while ((await billing()).balanceMicros > -5 * DOLLAR) await advance()
  t.equal(await countRunning(), 19, 'while the debt is below what the card has paid')
  await pay(5)
  t.match(await billing(), { paymentFailed: true, paymentGraceUntil: failed.paymentGraceUntil })
  t.same(amounts(), ['4864'], 'a payment that does not pay the debt does not charge the card again')

  for (let hours = 0; hours < 10 && (await countRunning()) > 0; hours++) await advance()
  t.equal(await countRunning(), 0)
  const owed = -(await billing()).balanceMicros
  const second = (19 * ULTRA) / 3600
  t.ok(owed >= 25 * DOLLAR && owed < 25 * DOLLAR + 3 * second, `owes ${owed / DOLLAR}`)
  t.match((await create('nano')).json, { error: 'insufficient_balance' })
})

t.test(
  'a payment that pays the debt ends the failure, and a card is trusted with its own payments',
  async (t) => {
    const { api, coordinator, stripe, send, pay, advance, billing, create, createAtOnce, countRunning } =
      await start(t)
    const first = await pay(25, { savesCard: true })
    stripe.outcome = 'declined'
    await createAtOnce(19)
    while ((await billing()).balanceMicros > 0) await advance()
    t.match(await billing(), { paymentFailed: true })
    await pay(20)
    t.match(await billing(), { paymentFailed: true }, 'the card is charged again at once, and declines again')
    stripe.outcome = 'paid'
    await pay(20)
    const paid = await billing()
    t.match(paid, { paymentFailed: false, paymentGraceUntil: null })
    t.ok(paid.overdraftMicros > 70 * DOLLAR, 'the automatic payment counts too')

    await send('charge.refunded', { id: 'ch_1', amount_refunded: 2500, metadata: first.metadata })
    t.equal((await billing()).overdraftMicros, paid.overdraftMicros - 25 * DOLLAR, 'a refund does not')
    stripe.outcome = 'declined'
    await pay(5, { savesCard: true })
    t.equal((await billing()).overdraftMicros, 5 * DOLLAR, 'another card')
    const session = await createTestSession(coordinator)
    t.equal((await api('DELETE', '/billing/card', undefined, session)).status, 204)
    t.match(await billing(), { overdraftMicros: 0, overage: false })
    for (let hours = 0; hours < 20 && (await countRunning()) > 0; hours++) await advance()
    t.ok(
      (await billing()).balanceMicros > -DOLLAR,
      'without a card, the boxes run until the balance is empty',
    )
    t.match((await create('nano')).json, { error: 'insufficient_balance' })
  },
)

t.test('the operator limits what a workspace may owe', async (t) => {
  const { stripe, pay, billing, createAtOnce } = await start(t, { BOXWOOD_CARD_OVERDRAFT: '1.00' })
  stripe.outcome = 'declined'
  await pay(25, { savesCard: true })
  t.equal((await billing()).overdraftMicros, DOLLAR)
  t.equal((await createAtOnce(12)).created.length, 10, 'four hours of 10 boxes cost $25.60')
})

t.test('a workspace whose card pays for a cheap box has three days after a failure', async (t) => {
  const { coordinator, clock, stripe, pay, advance, billing, create, countRunning } = await start(t)
  await pay(25, { savesCard: true })
  stripe.outcome = 'declined'
  const { json } = await create('max')
  await coordinator.waitForState(json.box.id, 'running')
  await advance(16)
  const { paymentGraceUntil, balanceMicros } = await billing()
  t.equal(Date.parse(paymentGraceUntil) - clock.now(), 72 * HOUR_MS)
  t.ok(balanceMicros < 20 * DOLLAR, 'below the amount at which the card is charged')
  await advance(71)
  t.ok((await billing()).balanceMicros < 0)
  t.equal(await countRunning(), 1, 'the box runs on for three days')
  await advance(2)
  t.equal(await countRunning(), 0)
})
