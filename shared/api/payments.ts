// Schemas of the payments of a workspace by card.
import * as z from 'zod'

const USD = { min: 5, max: 1000 } as const
const AMOUNT_RULE = `must be an amount in dollars between ${USD.min} and ${USD.max} with at most two decimals`

export const checkoutRequestSchema = z
  .strictObject({
    amountUsd: z
      .number(AMOUNT_RULE)
      .min(USD.min, AMOUNT_RULE)
      .max(USD.max, AMOUNT_RULE)
      .refine((amount) => Math.round(amount * 100) / 100 === amount, AMOUNT_RULE)
      .meta({ description: 'dollars, with at most two decimals' }),
    saveCard: z.boolean().optional().meta({
      description: 'true: later payments are taken from the card when the balance is low',
    }),
  })
  .meta({ id: 'Checkout' })
export type CheckoutRequest = z.infer<typeof checkoutRequestSchema>

export const checkoutResponseSchema = z.object({
  url: z.string().meta({ description: 'the page at which the owner pays' }),
})

export const paymentEventResponseSchema = z.object({ received: z.literal(true) })
