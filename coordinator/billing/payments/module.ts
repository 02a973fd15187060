// Payments by card. Without BOXWOOD_BILLING=stripe, the routes respond with bad_request.
import { ApiError } from '../../../shared/errors.ts'
import type { ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Mailer } from '../../identity/mail/mailer.ts'
import type { Scheduler } from '../../jobs/scheduler.ts'
import type { Billing } from '../billing.ts'
import { paymentRoutes } from './routes.ts'
import { createPaymentService, type PaymentService } from './service.ts'
import { createStripeProvider, type StripeOptions } from './stripe.ts'

export type PaymentsModuleContext = ModuleBase & {
  billing: Billing
  mailer: Pick<Mailer, 'send'>
  scheduler: Pick<Scheduler, 'scheduleAt'>
  overrides: { stripeApi?: StripeOptions['api'] }
}

export function paymentsModule(context: PaymentsModuleContext) {
  const payments = open(context) ?? WITHOUT_CARDS
  return {
    services: { payments },
    routes: withTag('Billing', paymentRoutes({ payments })),
  }
}

function open(context: PaymentsModuleContext): PaymentService | null {
  const { db, clock, log, config, billing, mailer, scheduler, overrides } = context
  const { stripeKey, stripeWebhookSecret, autoTopUpMicros } = config
  const billingUrl = billing?.billingUrl ?? null
  if (billing === null || billingUrl === null || stripeKey === null || stripeWebhookSecret === null)
    return null
  const provider = createStripeProvider({
    secretKey: stripeKey,
    webhookSecret: stripeWebhookSecret,
    clock,
    ...(overrides.stripeApi && { api: overrides.stripeApi }),
  })
  return createPaymentService({
    db,
    clock,
    log,
    finances: billing.finances,
    provider,
    mailer,
    billingUrl,
    autoTopUpMicros,
    onSchedule: scheduler.scheduleAt,
  })
}

async function refuse(): Promise<never> {
  throw new ApiError('bad_request', 'This coordinator accepts no payments by card.')
}

const WITHOUT_CARDS: PaymentService = {
  checkout: refuse,
  removeCard: refuse,
  receive: refuse,
  collect: async () => {},
}
