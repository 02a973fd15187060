// Payments by card: checkout, events in any order and number, payments from a saved card, refunds.
import t, { type Test } from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { STRIPE_ENV, startFakeStripe } from '../support/fake-stripe.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

const WEBHOOK = '/billing/stripe/webhook'

async function start(t: Test) {
  const stripe = await startFakeStripe(t)
  const printed: string[] = []
  const coordinator = await startTestCoordinator(t, {
    env: STRIPE_ENV,
    stripeApi: stripe.api,
    print: (line) => void printed.push(line),
  })
  const { api, instance } = coordinator
  const workspaceId = instance.owner?.workspaceId ?? ''
  const session = await createTestSession(coordinator, 'owner')
  /** The first box of the coordinator costs less than a cent during a test. */
  async function billing() {
    const { billing: state } = (await api('GET', '/me')).json
    return { ...state, dollars: Math.round(state.balanceMicros / 10_000) / 100 }
  }
  const send = (type: string, object: object) => {
    const { payload, headers } = stripe.createEvent(type, object)
    return api('POST', WEBHOOK, payload, { key: null, headers })
  }
  /** A payment that the owner has made on the page of Stripe. */
  const pay = (amount: number, fields: object = {}) =>
    stripe.addIntent({
      amount: String(amount * 100),
      'metadata[boxwood_workspace]': workspaceId,
      ...fields,
    })
  const adjust = (amountUsd: number) =>
    api('POST', `/operator/workspaces/${workspaceId}/credit`, { amountUsd })
  const waitFor = (what: string, isTrue: (state: Awaited<ReturnType<typeof billing>>) => boolean) =>
    waitUntil(what, async () => {
      const state = await billing()
      return isTrue(state) ? state : undefined
    })
  const collections = () => stripe.requests.filter(({ path }) => path === 'POST /v1/payment_intents')
  return {
    ...coordinator,
    stripe,
    workspaceId,
    session,
    billing,
    send,
    pay,
    adjust,
    waitFor,
    collections,
    printed,
  }
}

const session = (intent: { id: string; metadata: object }) => ({
  id: 'cs_1',
  object: 'checkout.session',
  payment_intent: intent.id,
  metadata: intent.metadata,
})

t.test('an owner pays, and each payment and refund counts once', async (t) => {
  const { api, stripe, session: owner, workspaceId, billing, send, pay } = await start(t)
  const { status, json } = await api('POST', '/billing/checkout', { amountUsd: 25, saveCard: true }, owner)
  t.same([status, json.url], [201, 'https://checkout.example.com/cs_1'])
  const { form } = stripe.requests.find(({ path }) => path === 'POST /v1/checkout/sessions') ?? {}
  t.match(form, {
    customer: 'cus_1',
    mode: 'payment',
    'line_items[0][price_data][unit_amount]': '2500',
    'payment_intent_data[setup_future_usage]': 'off_session',
    'payment_intent_data[metadata][boxwood_workspace]': workspaceId,
  })
  t.match(await billing(), { dollars: 5, trial: true, overage: false })

  const paid = pay(25, { setup_future_usage: 'off_session' })
  const answers = await Promise.all([
    send('checkout.session.completed', session(paid)),
    send('payment_intent.succeeded', paid),
    send('payment_intent.succeeded', paid),
    send('checkout.session.completed', session(paid)),
  ])
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  t.match(await billing(), { dollars: 30, trial: false, overage: true })

  for (const cents of [800, 500, 800])
    await send('charge.refunded', { id: 'ch_1', amount_refunded: cents, metadata: paid.metadata })
  await send('charge.refunded', { id: 'CH_1', amount_refunded: 100, metadata: paid.metadata })
  t.equal((await billing()).dollars, 21, 'the ids of charges are case-sensitive')
  t.same((await api('GET', '/operator/ledger-check')).json, { workspaces: 1, differences: [] })

  t.equal((await send('payment_intent.succeeded', { ...paid, id: 'pi_other', metadata: {} })).status, 200)
  const unknown = { boxwood_workspace: 'ws_000000000000000000000000' }
  t.equal((await send('payment_intent.succeeded', { ...paid, metadata: unknown })).status, 200)
  t.equal((await send('customer.created', { id: 'cus_2' })).status, 200)
  t.equal((await billing()).dollars, 21)
})

t.test('a saved card pays when the balance is low, once for each attempt', async (t) => {
  const {
    api,
    stripe,
    session: owner,
    billing,
    send,
    pay,
    adjust,
    waitFor,
    collections,
    printed,
  } = await start(t)
  await send('payment_intent.succeeded', pay(25, { setup_future_usage: 'off_session' }))
  await adjust(-12)
  await waitFor('the card has paid', ({ dollars }) => dollars === 38)
  t.match(collections(), [{ form: { amount: '2000', customer: 'cus_1', off_session: 'true' } }])
  await send('payment_intent.succeeded', [...stripe.intents.values()].at(-1) ?? {})
  t.match(await billing(), { dollars: 38, collecting: false })

  stripe.outcome = 'lost'
  await adjust(-20)
  await waitUntil('a call was repeated', () => collections().length >= 3 || undefined)
  stripe.outcome = 'paid'
  await adjust(-1)
  await waitFor('the card has paid', ({ dollars }) => dollars === 37)
  t.equal(new Set(collections().map(({ idempotencyKey }) => idempotencyKey)).size, 2)
  t.equal(stripe.intents.size, 3)

  stripe.outcome = 'declined'
  await adjust(-36)
  const failed = await waitFor('the payment has failed', ({ paymentFailed }) => paymentFailed)
  t.match(failed, { overage: true, collecting: false })
  t.match((await api('POST', '/boxes', { tier: 'ultra' })).json, { error: 'insufficient_balance' })
  const graceMs = Date.parse(failed.paymentGraceUntil) - Date.now()
  t.ok(graceMs > 71 * 3_600_000 && graceMs <= 72 * 3_600_000, 'the grace is three days')
  const listMails = () => printed.filter((line) => line.endsWith(': The payment for your boxes has failed'))
  await waitUntil('the owner gets a mail', () => listMails().length > 0 || undefined)
  stripe.outcome = 'paid'
  await send('payment_intent.succeeded', pay(10))
  await waitFor('the card pays again', ({ dollars }) => dollars === 31)
  t.match(await billing(), { paymentFailed: false, paymentGraceUntil: null, collecting: false })
  const { metadata = {} } = [...stripe.intents.values()][1] ?? {}
  await send('payment_intent.payment_failed', { id: 'pi_9', metadata, last_payment_error: null })
  t.equal(listMails().length, 1)
  t.equal((await billing()).paymentFailed, false, 'an attempt that has an outcome does not fail later')

  t.equal((await api('DELETE', '/billing/card', undefined, owner)).status, 204)
  t.equal((await api('DELETE', '/billing/card', undefined, owner)).status, 204)
  t.equal((await billing()).overage, false)
  t.equal(stripe.requests.filter(({ path }) => path.endsWith('/detach')).length, 1)
  const { json } = await api('GET', '/audit?limit=100')
  const kinds = json.events.map(({ kind }: { kind: string }) => kind)
  for (const kind of ['billing.payment', 'billing.payment_failed', 'billing.card_remove'])
    t.ok(kinds.includes(kind), kind)
})

t.test('another card ends an attempt without an outcome', async (t) => {
  const { instance, stripe, send, pay, billing } = await start(t)
  const { db, clock } = instance.context
  stripe.outcome = 'lost'
  await send('payment_intent.succeeded', pay(25, { setup_future_usage: 'off_session' }))
  await db.updateTable('billing_accounts').set({ collecting_since: clock.now() }).execute()
  await send('payment_intent.succeeded', pay(5))
  t.match(await billing(), { collecting: true }, 'the same card')
  await send('payment_intent.succeeded', pay(5, { setup_future_usage: 'off_session' }))
  t.match(await billing(), { collecting: false, overage: true })
})

t.test('an attempt without an outcome ends after a day, without another payment', async (t) => {
  const { instance, send, pay, adjust, waitFor, collections } = await start(t)
  const { db, clock } = instance.context
  await send('payment_intent.succeeded', pay(25, { setup_future_usage: 'off_session' }))
  const since = clock.now() - 24 * 3_600_000
  await db.updateTable('billing_accounts').set({ collecting_since: since }).execute()
  await adjust(-15)
  await waitFor('the payment has failed', ({ paymentFailed, collecting }) => paymentFailed && !collecting)
  t.equal(collections().length, 0)
})

t.test('the refusals of payments', async (t) => {
  const coordinator = await start(t)
  const { api, stripe, session: owner, pay } = coordinator
  const member = await createTestSession(coordinator, 'member')
  const contractor = await createTestSession(coordinator, 'contractor')
  for (const [method, path, body] of [
    ['POST', '/billing/checkout', { amountUsd: 20 }],
    ['DELETE', '/billing/card', undefined],
  ] as const) {
    t.match((await api(method, path, body, member)).json, { error: 'not_owner' })
    t.match((await api(method, path, body, contractor)).json, { error: 'not_allowed' })
    t.match((await api(method, path, body)).json, { error: 'unauthorized' }, 'an API key')
  }
  for (const amountUsd of [4.99, 1000.01, 5.001, '20'])
    t.match((await api('POST', '/billing/checkout', { amountUsd }, owner)).json, { error: 'bad_request' })

  const { payload, headers } = stripe.createEvent('payment_intent.succeeded', pay(25))
  const receive = (body: string, headers: Record<string, string>) =>
    api('POST', WEBHOOK, body, { key: null, headers })
  t.match((await receive(payload, {})).json, { error: 'bad_request' })
  t.match((await receive(payload.replace('2500', '9900'), headers)).json, { error: 'bad_request' })
  t.match((await receive(payload, { 'stripe-signature': 't=1,v1=00' })).json, { error: 'bad_request' })
  t.match((await receive('x'.repeat(1024 ** 2 + 1), headers)).json, { error: 'bad_request' })
  t.equal((await receive(payload, headers)).status, 200)

  const manual = await startTestCoordinator(t, { env: { BOXWOOD_BILLING: 'manual' } })
  const manualOwner = await createTestSession(manual)
  const answers = [
    await manual.api('POST', '/billing/checkout', { amountUsd: 20 }, manualOwner),
    await manual.api('DELETE', '/billing/card', undefined, manualOwner),
    await manual.api('POST', WEBHOOK, payload, { key: null, headers }),
  ]
  for (const { json } of answers) t.match(json, { error: 'bad_request' })
})

t.test('no payment is started for a closing workspace', async (t) => {
  const { api, instance, session: owner, send, pay, billing } = await start(t)
  const { db } = instance.context
  await db
    .updateTable('workspaces')
    .set({ closing_at: 1, purge_after: Date.now() + 86_400_000 })
    .execute()
  const closing = await api('POST', '/billing/checkout', { amountUsd: 20 }, owner)
  t.match(closing, { status: 409, json: { error: 'workspace_closing' } })
  t.equal((await send('payment_intent.succeeded', pay(25))).status, 200)
  t.equal((await billing()).dollars, 30, 'a payment that was in progress counts')
})

t.test('an unavailable provider', async (t) => {
  const { api, session: owner } = await startTestCoordinator(t, {
    env: STRIPE_ENV,
    stripeApi: { host: '127.0.0.1', port: 1, protocol: 'http' },
  }).then(async (coordinator) => ({ ...coordinator, session: await createTestSession(coordinator) }))
  t.match((await api('POST', '/billing/checkout', { amountUsd: 20 }, owner)).json, {
    error: 'control_plane_unavailable',
  })
})
