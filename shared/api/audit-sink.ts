// Schemas of the export of the audit log to an HTTPS endpoint (spec §5.7, §6).
import * as z from 'zod'
import { AUDIT_SINK_STARTS } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { auditEventSchema } from './audit.ts'
import { timestampSchema } from './common.ts'

const { urlChars, batchEvents, timeoutSeconds } = LIMITS.auditSink

const URL_RULE = `must be an https URL of at most ${urlChars} characters without user name, password and fragment, such as https://siem.example.com/boxwood`

function isSinkUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.protocol === 'https:' && url.username + url.password + url.hash === ''
}

export const auditSinkSchema = z
  .object({
    url: z.string(),
    deliveredThrough: z.int().meta({ description: 'the id of the last delivered event; 0: none' }),
    pending: z.int().meta({ description: 'events that are not delivered yet' }),
    lastDeliveredAt: timestampSchema.nullable(),
    lastError: z.string().nullable().meta({
      description: 'why the last delivery failed; null: it succeeded, or there was none',
    }),
    attempt: z.int().meta({ description: 'failed deliveries since the last successful one' }),
    nextAttemptAt: timestampSchema.nullable().meta({
      description: 'when a failed delivery is sent again; null: it has not failed',
    }),
    updatedBy: z.string().nullable().meta({ description: 'the id of the user who configured it' }),
    updatedAt: timestampSchema,
  })
  .meta({ id: 'AuditSink', description: 'The HTTPS endpoint that receives the audit events' })
export type AuditSink = z.infer<typeof auditSinkSchema>

export const auditSinkResponseSchema = z.object({
  sink: auditSinkSchema.nullable().meta({ description: 'null: none is configured' }),
})

/** The body of PUT /audit/sink. */
export const putAuditSinkRequestSchema = z
  .strictObject({
    url: z
      .string(URL_RULE)
      .max(urlChars, URL_RULE)
      .refine(isSinkUrl, URL_RULE)
      .meta({
        description: `an https URL of at most ${urlChars} characters without user name, password and fragment. Its host must have public addresses only, unless the operator allows private ones.`,
        format: 'uri',
      }),
    from: z.enum(AUDIT_SINK_STARTS, 'must be now or start').optional().meta({
      description:
        'the first event to deliver: `now` is this request itself, `start` is the oldest stored event. Default: now for a new endpoint; otherwise deliveries continue after the last delivered event.',
    }),
  })
  .meta({ id: 'PutAuditSink' })
export type PutAuditSinkRequest = z.infer<typeof putAuditSinkRequestSchema>

export const putAuditSinkResponseSchema = z.object({
  sink: auditSinkSchema,
  secret: z.string().nullable().meta({
    description:
      'signs the deliveries: `whsec_` and base64. Returned when the url is new or changed, and never again; otherwise null.',
  }),
})
export type PutAuditSinkResponse = z.infer<typeof putAuditSinkResponseSchema>

/** The body of a delivery. */
export const auditDeliverySchema = z
  .object({
    workspaceId: z.string(),
    events: z
      .array(auditEventSchema)
      .meta({ description: `1 to ${batchEvents} events as in GET /audit, by id, ascending` }),
    skippedThrough: z.int().nullable().meta({
      description:
        'the events up to this id were deleted after their retention, before they could be delivered; null: no event is missing before this batch',
    }),
  })
  .meta({
    id: 'AuditDelivery',
    description: `The body of a POST to the endpoint of the audit log. A status of 2xx within ${timeoutSeconds} seconds confirms it.`,
  })
export type AuditDelivery = z.infer<typeof auditDeliverySchema>
