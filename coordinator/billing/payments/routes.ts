// Routes of payments by card. Only owners with a dashboard session may pay (spec §5, rule 7).
import type { Readable } from 'node:stream'
import {
  checkoutRequestSchema,
  checkoutResponseSchema,
  paymentEventResponseSchema,
} from '../../../shared/api/payments.ts'
import { ApiError } from '../../../shared/errors.ts'
import { bySession } from '../../http/access.ts'
import { type Route, route, routeWithoutCredential } from '../../http/route.ts'
import type { PaymentService } from './service.ts'

const WITHOUT_CARDS = 'Without BOXWOOD_BILLING=stripe, the answer is bad_request.'
const UNREACHABLE = {
  control_plane_unavailable: 'The payment provider, or the coordinator, is not available. Try again.',
}

export const paymentRoutes = ({ payments }: { payments: PaymentService }): Route[] => [
  route({
    id: 'billing.startCheckout',
    method: 'POST',
    path: '/billing/checkout',
    access: bySession('owner'),
    summary: 'Start a payment by card',
    description: `The owner pays on the page of the payment provider, and the provider reports the payment to the coordinator. ${WITHOUT_CARDS}`,
    request: { body: checkoutRequestSchema },
    responses: { 201: checkoutResponseSchema },
    errors: ['workspace_closing'],
    errorDescriptions: UNREACHABLE,
    handler: async ({ actor, body }) => ({ url: await payments.checkout(actor, body) }),
  }),
  route({
    id: 'billing.removeCard',
    method: 'DELETE',
    path: '/billing/card',
    access: bySession('owner'),
    summary: 'Remove the saved card',
    description: `No more payments are taken from the card. No effect without a saved card. ${WITHOUT_CARDS}`,
    responses: { 204: null },
    handler: ({ actor }) => payments.removeCard(actor),
  }),
  routeWithoutCredential({
    id: 'billing.receiveStripeEvent',
    method: 'POST',
    path: '/billing/stripe/webhook',
    summary: 'Receive an event of Stripe',
    description: `For Stripe, which signs its events: bad_request for another signature. An event that is not about a workspace of this coordinator has no effect. ${WITHOUT_CARDS}`,
    rawBody: true,
    responses: { 200: paymentEventResponseSchema },
    async handler({ request }) {
      const { 'stripe-signature': signature } = request.headers
      if (typeof signature !== 'string')
        throw new ApiError('bad_request', 'The header Stripe-Signature is missing.')
      await payments.receive(await readBody(request.raw), signature)
      return { received: true }
    },
  }),
]

/** Events of Stripe are much smaller. */
const MAX_BYTES = 1024 ** 2

async function readBody(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BYTES) throw new ApiError('bad_request', `body must be at most ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
