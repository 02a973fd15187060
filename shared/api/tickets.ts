// Schemas of terminal tickets (spec §5.10). Not in the spec: how a ticket is created.
import * as z from 'zod'
import { LIMITS } from '../limits.ts'
import { timestampSchema } from './common.ts'

const { min, max, default: defaultSeconds } = LIMITS.ticketSeconds

/** POST /boxes/{id}/tickets. */
export const createTicketRequestSchema = z
  .strictObject({
    expiresInSeconds: z
      .int()
      .min(min)
      .max(max)
      .optional()
      .meta({
        description: `lifetime of the ticket, ${min} to ${max} seconds; default ${defaultSeconds}. It never exceeds that of the session`,
      }),
  })
  .meta({ id: 'CreateTicketRequest' })
export type CreateTicketRequest = z.infer<typeof createTicketRequestSchema>

export const createTicketResponseSchema = z
  .object({
    ticket: z.object({
      id: z.string().meta({ description: 'starts with tkt_; identifies the ticket in the audit log' }),
      boxId: z.string(),
      expiresAt: timestampSchema,
    }),
    secret: z.string().meta({ description: 'the credential, which starts with dct_; shown only here' }),
  })
  .meta({ id: 'CreateTicketResponse' })
export type CreateTicketResponse = z.infer<typeof createTicketResponseSchema>
