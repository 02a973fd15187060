// Payments by card. Without BOXWOOD_BILLING=stripe, the routes respond with bad_request.

import { ApiError } from '../../../shared/errors.ts'
import type { Module, ModuleBase, Schedules } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Mailer } from '../../identity/mail/mailer.ts'
import type { Billing } from '../billing.ts'
import { createOwnerMails } from '../owner-mails.ts'
import type { BillingSettings } from '../settings.ts'
import { paymentRoutes } from './routes.ts'
import { createFailureMail, createPaymentService, type PaymentService } from './service.ts'
import { createStripeProvider, type StripeOptions } from './stripe.ts'

export type PaymentsModuleContext = ModuleBase & {
  config: BillingSettings
  billing: Billing
  mailer: Pick<Mailer, 'send'>
  overrides: { stripeApi?: StripeOptions['api'] }
}

export function paymentsModule(context: PaymentsModuleContext) {
  const { payments, schedules } = open(context) ?? { payments: WITHOUT_CARDS, schedules: {} }
  return {
    services: { payments },
    routes: withTag('Billing', paymentRoutes({ payments })),
    schedules,
  } satisfies Module
}

function open(context: PaymentsModuleContext): { payments: PaymentService; schedules: Schedules } | null {
  const { db, clock, log, config, billing, mailer, overrides } = context
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
  const { finances } = billing
  const payments = createPaymentService({
    db,
    clock,
    log,
    finances,
    provider,
    billingUrl,
    autoTopUpMicros,
  })
  const mailFailure = createOwnerMails({
    db,
    clock,
    log,
    finances,
    mailer,
    kind: 'mail_payment_failed',
    compose: createFailureMail({ billingUrl, autoTopUpMicros }),
  })
  return { payments, schedules: { handlers: { mail_payment_failed: mailFailure } } }
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
