// Payments by card with Stripe.
import type Stripe from 'stripe'
import type { Clock } from '../../../shared/clock.ts'
import {
  type Checkout,
  type Collection,
  type CollectResult,
  type PaymentEvent,
  type PaymentProvider,
  SignatureError,
} from './provider.ts'

export type StripeOptions = {
  secretKey: string
  webhookSecret: string
  clock: Clock
  /** Tests pass the address of a fake. */
  api?: { host: string; port: number; protocol: 'http' | 'https' }
}

const MICROS_PER_CENT = 10_000
const TIMEOUT_MS = 15_000
const CURRENCY = 'usd'
/** The fields of the metadata of our payments. Stripe copies them to the charge of a payment. */
const [WORKSPACE, ATTEMPT] = ['boxwood_workspace', 'boxwood_attempt'] as const

export function createStripeProvider(options: StripeOptions): PaymentProvider {
  const { secretKey, webhookSecret, clock, api } = options

  /** The package takes 100 ms to load. */
  const open = async (): Promise<{ stripe: Stripe; errors: (typeof Stripe)['errors'] }> => {
    const { default: StripeClient } = await import('stripe')
    const stripe = new StripeClient(secretKey, {
      ...api,
      timeout: TIMEOUT_MS,
      maxNetworkRetries: 1,
      telemetry: false,
    })
    return { stripe, errors: StripeClient.errors }
  }
  let opened: ReturnType<typeof open> | undefined
  const load = () => {
    opened ??= open()
    return opened
  }

  async function createCheckout(checkout: Checkout): Promise<string> {
    const { workspaceId, customerId, amountCents, saveCard, returnUrl } = checkout
    const { stripe } = await load()
    const { url } = await stripe.checkout.sessions.create({
      mode: 'payment',
      customer: customerId,
      line_items: [
        {
          quantity: 1,
          price_data: {
            currency: CURRENCY,
            unit_amount: amountCents,
            product_data: { name: 'Credit for boxes' },
          },
        },
      ],
      metadata: { [WORKSPACE]: workspaceId },
      payment_intent_data: {
        metadata: { [WORKSPACE]: workspaceId },
        ...(saveCard && { setup_future_usage: 'off_session' as const }),
      },
      success_url: `${returnUrl}?payment=success`,
      cancel_url: returnUrl,
    })
    if (url === null) throw new Error('Stripe has returned a checkout without a URL.')
    return url
  }

  async function collect(collection: Collection): Promise<CollectResult> {
    const { workspaceId, customerId, paymentMethodId, amountCents, attempt } = collection
    const { stripe, errors } = await load()
    try {
      const intent = await stripe.paymentIntents.create(
        {
          amount: amountCents,
          currency: CURRENCY,
          customer: customerId,
          payment_method: paymentMethodId,
          off_session: true,
          confirm: true,
          description: 'Credit for boxes',
          metadata: { [WORKSPACE]: workspaceId, [ATTEMPT]: attempt },
        },
        { idempotencyKey: `boxwood-${workspaceId}-${attempt}` },
      )
      if (intent.status === 'succeeded')
        return {
          status: 'paid',
          paymentId: intent.id,
          amountMicros: intent.amount_received * MICROS_PER_CENT,
        }
      return intent.status === 'processing'
        ? { status: 'pending' }
        : { status: 'failed', message: 'The card needs a confirmation by its owner.' }
    } catch (error) {
      // The card, or the stored ids of the customer and the card, do not work. Other errors may pass.
      const isRefused =
        error instanceof errors.StripeCardError || error instanceof errors.StripeInvalidRequestError
      if (isRefused) return { status: 'failed', message: error.message }
      throw error
    }
  }

  async function readEvent(body: Buffer, signature: string): Promise<PaymentEvent | null> {
    const { stripe, errors } = await load()
    let event: Stripe.Event
    try {
      event = stripe.webhooks.constructEvent(
        body,
        signature,
        webhookSecret,
        undefined,
        undefined,
        clock.now(),
      )
    } catch (error) {
      if (error instanceof errors.StripeSignatureVerificationError || error instanceof SyntaxError)
        throw new SignatureError('The signature of the event is not valid.', { cause: error })
      throw error
    }
    switch (event.type) {
      case 'checkout.session.completed': {
        // The session lacks the card. Both events of a payment have the same effect.
        const { payment_intent: intent, metadata } = event.data.object
        if (intent === null || metadata?.[WORKSPACE] === undefined) return null
        return readPayment(await stripe.paymentIntents.retrieve(toId(intent)))
      }
      case 'payment_intent.succeeded':
        return readPayment(event.data.object)
      case 'payment_intent.payment_failed': {
        const { metadata, last_payment_error: error } = event.data.object
        const { [WORKSPACE]: workspaceId, [ATTEMPT]: attempt } = metadata
        if (workspaceId === undefined || attempt === undefined) return null
        return {
          type: 'failed',
          workspaceId,
          attempt,
          message: error?.message ?? 'The card was declined.',
        }
      }
      case 'charge.refunded': {
        const { id, metadata, amount_refunded: cents } = event.data.object
        const workspaceId = metadata[WORKSPACE]
        if (workspaceId === undefined) return null
        return { type: 'refunded', workspaceId, chargeId: id, refundedMicros: cents * MICROS_PER_CENT }
      }
      default:
        return null
    }
  }

  return {
    async createCustomer({ workspaceId, email, name }) {
      const { stripe } = await load()
      const { id } = await stripe.customers.create(
        { name, ...(email !== null && { email }), metadata: { [WORKSPACE]: workspaceId } },
        { idempotencyKey: `boxwood-customer-${workspaceId}` },
      )
      return id
    },
    createCheckout,
    collect,
    async removeCard(paymentMethodId) {
      const { stripe } = await load()
      await stripe.paymentMethods.detach(paymentMethodId)
    },
    readEvent,
  }
}

const toId = (reference: string | { id: string }): string =>
  typeof reference === 'string' ? reference : reference.id

/** null: the payment is not one of Boxwood, or it is not paid yet. */
function readPayment(intent: Stripe.PaymentIntent): PaymentEvent | null {
  const workspaceId = intent.metadata[WORKSPACE]
  if (workspaceId === undefined || intent.status !== 'succeeded') return null
  const { customer, payment_method: card, setup_future_usage: usage } = intent
  const isSaved = usage === 'off_session' && customer !== null && card !== null
  return {
    type: 'paid',
    workspaceId,
    paymentId: intent.id,
    amountMicros: intent.amount_received * MICROS_PER_CENT,
    attempt: intent.metadata[ATTEMPT] ?? null,
    savedCard: isSaved ? { customerId: toId(customer), paymentMethodId: toId(card) } : null,
  }
}
