// Whether boxes cost something, and who collects it: environment variables.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { file, oneOf, positiveInteger } from '../base/setting-schemas.ts'

const BILLING_CHOICES = ['off', 'manual', 'stripe'] as const

/** Converts dollars to micro-dollars. */
const dollars = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,2})?$/, 'must be an amount in dollars with at most two decimals, such as 5.00')
  .transform((text) => Math.round(Number(text) * 100) * 10_000)

const MIN_TOP_UP_MICROS = 5_000_000

const secret = z.string().regex(/^[\x21-\x7e]{8,256}$/, 'must be 8 to 256 ASCII characters without spaces')

export const BILLING_SETTINGS = defineSettings(
  {
    billing: {
      variable: 'BOXWOOD_BILLING',
      default: 'off',
      description:
        'off, manual or stripe. off: boxes cost nothing. manual: `boxwood credit` adds credit to a workspace. stripe: owners also pay by card',
      schema: oneOf(BILLING_CHOICES),
    },
    pricesFile: {
      variable: 'BOXWOOD_PRICES',
      default: null,
      shownDefault: 'the prices in docs/billing.md',
      description: 'a JSON file with the prices and the times from which they apply; read at the start',
      schema: file,
    },
    freeCreditMicros: {
      variable: 'BOXWOOD_FREE_CREDIT',
      default: '5.00',
      description: "the credit of a person's first workspace in dollars, if billing is on",
      schema: dollars,
    },
    balanceWarnHours: {
      variable: 'BOXWOOD_BALANCE_WARN_HOURS',
      default: '24',
      description: 'owners get a mail when the balance lasts for less than these hours',
      schema: positiveInteger.refine((hours) => hours <= 8760, 'must be at most 8760'),
    },
    stripeKey: {
      variable: 'BOXWOOD_STRIPE_KEY',
      default: null,
      shownDefault: 'none',
      description: 'the secret key of Stripe, which BOXWOOD_BILLING=stripe needs',
      schema: secret,
      isSecret: true,
    },
    stripeWebhookSecret: {
      variable: 'BOXWOOD_STRIPE_WEBHOOK_SECRET',
      default: null,
      shownDefault: 'none',
      description: 'the signing secret of the webhook of Stripe, which BOXWOOD_BILLING=stripe needs',
      schema: secret,
      isSecret: true,
    },
    autoTopUpMicros: {
      variable: 'BOXWOOD_AUTO_TOP_UP',
      default: '20.00',
      description: 'dollars that a saved card pays when the balance of its workspace is lower',
      schema: dollars.refine((micros) => micros >= MIN_TOP_UP_MICROS, 'must be at least 5.00'),
    },
    cardOverdraftMicros: {
      variable: 'BOXWOOD_CARD_OVERDRAFT',
      default: '100.00',
      description:
        'the most dollars that a workspace with a saved card may owe; at most what the card has paid',
      schema: dollars,
    },
  },
  ({ billing, stripeKey, stripeWebhookSecret }) =>
    billing === 'stripe' && (stripeKey === null || stripeWebhookSecret === null)
      ? 'BOXWOOD_BILLING=stripe needs BOXWOOD_STRIPE_KEY and BOXWOOD_STRIPE_WEBHOOK_SECRET. `box docs billing` describes them.'
      : null,
)

export type BillingSettings = SettingsOf<typeof BILLING_SETTINGS>
