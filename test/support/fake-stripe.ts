// A fake of the few calls of Stripe that Boxwood uses, and events with the signatures of Stripe's library.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Stripe from 'stripe'
import type { Test } from 'tap'
import { type Clock, systemClock } from '../../shared/clock.ts'

export const STRIPE_ENV = {
  BOXWOOD_BILLING: 'stripe',
  BOXWOOD_STRIPE_KEY: 'sk_test_0123456789',
  BOXWOOD_STRIPE_WEBHOOK_SECRET: 'whsec_0123456789',
}

type Intent = {
  id: string
  object: 'payment_intent'
  status: string
  amount_received: number
  customer: string
  payment_method: string
  setup_future_usage: string | null
  metadata: Record<string, string>
}

type StripeRequest = { path: string; form: Record<string, string>; idempotencyKey: string | undefined }

/** @param clock of the coordinator, which accepts only events of the last minutes */
export async function startFakeStripe(t: Test, clock: Clock = systemClock) {
  const requests: StripeRequest[] = []
  const intents = new Map<string, Intent>()
  const responses = new Map<string, { status: number; body: object }>()
  const fake = {
    /** What happens to the next payments from a saved card. `lost`: they succeed, and the response is an error. */
    outcome: 'paid' as 'paid' | 'declined' | 'lost',
  }

  function addIntent(form: Record<string, string>): Intent {
    const metadata = Object.fromEntries(
      Object.entries(form).flatMap(([name, value]) => {
        const [, key] = /^metadata\[(.+)\]$/.exec(name) ?? []
        return key === undefined ? [] : [[key, value]]
      }),
    )
    const intent: Intent = {
      id: `pi_${intents.size + 1}`,
      object: 'payment_intent',
      status: 'succeeded',
      amount_received: Number(form.amount),
      customer: form.customer ?? 'cus_1',
      payment_method: form.payment_method ?? `pm_${intents.size + 1}`,
      setup_future_usage: form.setup_future_usage ?? null,
      metadata,
    }
    intents.set(intent.id, intent)
    return intent
  }

  function respond({ path, form }: StripeRequest): { status: number; body: object } {
    if (path === 'POST /v1/customers') return { status: 200, body: { id: 'cus_1', object: 'customer' } }
    if (path === 'POST /v1/checkout/sessions')
      return { status: 200, body: { id: 'cs_1', url: 'https://checkout.example.com/cs_1' } }
    if (path === 'POST /v1/payment_intents' && fake.outcome === 'declined')
      return { status: 402, body: { error: { type: 'card_error', message: 'Your card was declined.' } } }
    if (path === 'POST /v1/payment_intents') return { status: 200, body: addIntent(form) }
    const intent = intents.get(path.replace('GET /v1/payment_intents/', ''))
    return { status: 200, body: intent ?? { id: 'x' } }
  }

  async function read(request: IncomingMessage): Promise<StripeRequest> {
    const form = Object.fromEntries(new URLSearchParams(await text(request)))
    const { 'idempotency-key': key } = request.headers
    return {
      path: `${request.method} ${request.url}`,
      form,
      idempotencyKey: typeof key === 'string' ? key : undefined,
    }
  }

  const server = createServer(async (request, response) => {
    const parsed = await read(request)
    requests.push(parsed)
    const id = `${parsed.path} ${parsed.idempotencyKey}`
    const known = parsed.path.startsWith('POST') ? responses.get(id) : undefined
    const { status, body } = known ?? respond(parsed)
    responses.set(id, { status, body })
    const isLost = parsed.path === 'POST /v1/payment_intents' && fake.outcome === 'lost'
    response.writeHead(isLost ? 503 : status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isLost ? { error: { type: 'api_error', message: 'lost' } } : body))
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { webhooks } = new Stripe(STRIPE_ENV.BOXWOOD_STRIPE_KEY)
  let events = 0

  return Object.assign(fake, {
    api: { host: '127.0.0.1', port: (server.address() as AddressInfo).port, protocol: 'http' as const },
    requests,
    intents,
    addIntent,
    /** The body and the headers of an event. */
    createEvent(type: string, object: object) {
      events += 1
      const payload = JSON.stringify({ id: `evt_${events}`, object: 'event', type, data: { object } })
      const secret = STRIPE_ENV.BOXWOOD_STRIPE_WEBHOOK_SECRET
      const timestamp = Math.floor(clock.now() / 1000)
      return {
        payload,
        headers: {
          'stripe-signature': webhooks.generateTestHeaderString({ payload, secret, timestamp }),
        },
      }
    },
  })
}
