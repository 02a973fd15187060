// Schemas of the billing of a workspace, which its owners read: prices, the plan, and the entries of the ledger.
import * as z from 'zod'
import { BILLING_PROVIDERS } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { accountBillingSchema } from './account.ts'
import {
  cursorSchema,
  microDollarsSchema,
  nextBeforeSchema,
  queryIntegerBetween,
  tierSchema,
  timestampSchema,
} from './common.ts'

const countSchema = z.int().min(0)
const planSchema = z
  .object({
    name: z.enum(['free', 'paid']).meta({ description: 'free: the workspace has had no payment' }),
    boxes: countSchema,
    snapshots: countSchema,
    secrets: countSchema,
    terminals: countSchema.meta({ description: 'open terminals' }),
    tiers: z.array(tierSchema),
  })
  .meta({ id: 'Plan', description: 'What the workspace may have.' })

const pricesSchema = z
  .object({
    tiers: z.array(
      z.object({
        tier: tierSchema,
        runningMicrosPerHour: microDollarsSchema.meta({ description: 'a running box, with its disk' }),
        diskMicrosPerHour: microDollarsSchema.meta({ description: 'the disk of a box that does not run' }),
      }),
    ),
    snapshotGbMicrosPerHour: microDollarsSchema.meta({ description: 'a GB of snapshots' }),
  })
  .meta({ id: 'Prices', description: 'The prices at this moment.' })

export const billingSchema = accountBillingSchema
  .extend({
    provider: z.enum(BILLING_PROVIDERS).meta({
      description:
        'off: nothing has a price. manual: an operator of the coordinator grants credit. stripe: owners also pay by card',
    }),
    hasCard: z.boolean(),
    freeCreditMicros: microDollarsSchema.meta({
      description: 'what a new workspace gets, if it is the first one of its owner',
    }),
    plan: planSchema.nullable().meta({ description: 'null: billing is off' }),
    prices: pricesSchema.nullable().meta({ description: 'null: billing is off' }),
  })
  .meta({ id: 'Billing' })
export type BillingDetails = z.infer<typeof billingSchema>

export const ENTRY_KINDS = ['usage', 'free_credit', 'credit', 'top_up', 'adjustment', 'refund'] as const

export const billingEntrySchema = z
  .object({
    id: z.string().meta({ description: 'what has caused the entry; unique in the workspace' }),
    kind: z.enum(ENTRY_KINDS),
    amountMicros: microDollarsSchema.meta({ description: 'negative: it has reduced the balance' }),
    boxId: z.string().nullable().meta({ description: 'of usage' }),
    since: timestampSchema.nullable().meta({ description: 'of usage: when it began' }),
    until: timestampSchema.nullable().meta({ description: 'of usage: when it ended' }),
    note: z.string().nullable().meta({ description: 'of the usage of a snapshot: the id of the snapshot' }),
    at: timestampSchema,
  })
  .meta({ id: 'BillingEntry', description: 'An entry of the ledger. It never changes.' })
export type BillingEntry = z.infer<typeof billingEntrySchema>

const pageLimit = LIMITS.entryPage
export const entryListQuerySchema = z.object({
  limit: queryIntegerBetween(pageLimit.min, pageLimit.max)
    .optional()
    .meta({ description: `default: ${pageLimit.default}` }),
  before: cursorSchema,
})
/** Fields that are not listed: bad_request. */
export const ENTRY_LIST_ERROR_CODES = { before: 'invalid_cursor' } as const
export type EntryListQuery = z.infer<typeof entryListQuerySchema>

export const entryListSchema = z.object({
  entries: z.array(billingEntrySchema).meta({ description: 'newest first' }),
  nextBefore: nextBeforeSchema,
})
export type EntryList = z.infer<typeof entryListSchema>
