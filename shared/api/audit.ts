// Schemas of the audit log (spec §2.7b, §4.12).
import * as z from 'zod'
import {
  AUDIT_KINDS,
  type AuditKind,
  CLIENT_AUDIT_KINDS,
  findSimilarKinds,
  SERVER_AUDIT_KINDS,
} from '../audit-kinds.ts'
import { AUDIT_ACTOR_KINDS, AUDIT_ORIGINS } from '../field-values.ts'
import { isId } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { isUuid } from '../uuid.ts'
import { queryIntegerBetween, queryOffset, timestampSchema } from './common.ts'
import { queryInstantSchema } from './request-times.ts'

export type AuditActorKind = (typeof AUDIT_ACTOR_KINDS)[number]

export type AuditOrigin = (typeof AUDIT_ORIGINS)[number]

const idSchema = z.int().meta({ description: 'ascending within the workspace, from 1 and without gaps' })
const hashSchema = z.string().meta({
  description: 'SHA-256 (hex) of the event and the hash of the event before it; see GET /audit/chain',
})
const detailValueSchema = z.union([z.string(), z.number(), z.boolean(), z.null()])

export const auditEventSchema = z
  .object({
    id: idSchema,
    at: timestampSchema,
    kind: z.string(),
    origin: z.enum(AUDIT_ORIGINS).meta({
      description: 'server: recorded by the coordinator; client: reported with POST /audit',
    }),
    actorKind: z.enum(AUDIT_ACTOR_KINDS).meta({
      description: 'cli: an API key that `box login` has created; system: the coordinator itself',
    }),
    actorUserId: z.string().nullable(),
    actorTokenId: z.string().nullable().meta({ description: 'the id of the API key, session or ticket' }),
    boxId: z.string().nullable(),
    detail: z
      .record(z.string(), detailValueSchema)
      .meta({ description: 'fields of the kind; empty when zero data retention has erased them' }),
    hash: hashSchema,
  })
  .meta({ id: 'AuditEvent' })
export type AuditEvent = z.infer<typeof auditEventSchema>

const chainPositionSchema = z.object({ id: z.int(), hash: z.string() })

export const auditChainEventSchema = auditEventSchema
  .omit({ detail: true })
  .extend({
    detail: z
      .string()
      .nullable()
      .meta({ description: 'the detail as JSON text, exactly as it is hashed; null: erased, like salt' }),
    salt: z.string().nullable(),
    detailHash: z.string().meta({ description: 'SHA-256 (hex) of salt, a newline and detail' }),
  })
  .meta({ id: 'AuditChainEvent' })
export type AuditChainEvent = z.infer<typeof auditChainEventSchema>

export const auditChainPageSchema = z.object({
  workspaceId: z.string(),
  start: chainPositionSchema.meta({
    description:
      'The event before the oldest one that is kept: the last one that retention has deleted. id 0 and 64 zeros when none has been.',
  }),
  head: chainPositionSchema
    .extend({ at: timestampSchema.nullable() })
    .meta({ description: 'The newest event. Like start, with at null, when there is none.' }),
  events: z.array(auditChainEventSchema).meta({ description: 'ascending' }),
  next: z.int().nullable().meta({ description: 'value of `after` for the next page; null on the last page' }),
})
export type AuditChainPage = z.infer<typeof auditChainPageSchema>

export const auditChainQuerySchema = z.object({
  after: queryOffset()
    .optional()
    .meta({ description: 'only events with greater ids: next of the previous page; default: 0' }),
  limit: queryIntegerBetween(LIMITS.auditPage.min, LIMITS.auditPage.max)
    .optional()
    .meta({ description: `default: ${LIMITS.auditPage.max}` }),
})
export type AuditChainQuery = z.infer<typeof auditChainQuerySchema>

export const auditListSchema = z.object({
  events: z.array(auditEventSchema),
  nextBefore: z.int().nullable().meta({
    description:
      'Value of `before` for the next page; null on the last page. A page of several filters may have fewer events than limit, or none, and still not be the last one.',
  }),
})
export type AuditList = z.infer<typeof auditListSchema>

const pageLimit = LIMITS.auditPage
const isKind = (text: string): text is AuditKind => (AUDIT_KINDS as readonly string[]).includes(text)

export const auditQuerySchema = z.object({
  since: queryInstantSchema.optional().meta({ description: 'events at or after this time' }),
  until: queryInstantSchema.optional().meta({ description: 'events before this time' }),
  kind: z
    .string()
    .transform((text, context): AuditKind[] => {
      const kinds = text.split(',')
      if (kinds.every(isKind)) return kinds
      const unknown = kinds.find((kind) => !isKind(kind)) ?? ''
      const similar = findSimilarKinds(unknown)
      const question = similar.length === 0 ? '' : ` Did you mean ${similar.join(', ')}?`
      context.addIssue(
        `must be one kind, or several separated by commas: there is no kind '${unknown.slice(0, 64)}'.${question} The guide audit (\`box docs audit\`) lists all kinds.`,
      )
      return z.NEVER
    })
    .optional()
    .meta({
      description: 'One of the kinds above, or several separated by commas',
    }),
  box: z
    .string()
    .refine(isUuid, 'must be the id of a box: a UUID')
    .optional()
    .meta({ description: 'box id' }),
  actor: z
    .string()
    .refine((text) => isId('user', text), 'must be the id of a user, such as usr_…')
    .optional()
    .meta({ description: 'user id' }),
  origin: z.enum(AUDIT_ORIGINS).optional(),
  before: queryIntegerBetween(1, Number.MAX_SAFE_INTEGER)
    .optional()
    .meta({ description: 'nextBefore of the previous page: only events with smaller ids' }),
  limit: queryIntegerBetween(pageLimit.min, pageLimit.max)
    .optional()
    .meta({ description: `default: ${pageLimit.default}; with format=csv ${LIMITS.auditCsvRows}` }),
  format: z.enum(['json', 'csv']).optional().meta({ description: 'default: json' }),
})
export type AuditQuery = z.infer<typeof auditQuerySchema>

export const AUDIT_QUERY_ERROR_CODES = {
  since: 'invalid_time',
  until: 'invalid_time',
  kind: 'invalid_kind',
  box: 'invalid_box',
  actor: 'invalid_actor',
  origin: 'invalid_origin',
  before: 'invalid_cursor',
  limit: 'invalid_limit',
  format: 'invalid_format',
} as const

export const AUDIT_CHAIN_ERROR_CODES = { after: 'invalid_cursor', limit: 'invalid_limit' } as const

const { keys, keyChars, stringChars } = LIMITS.auditReport

export const auditReportSchema = z.strictObject({
  kind: z.enum(CLIENT_AUDIT_KINDS),
  boxId: z.string().meta({ description: 'id of a box that is not deleted' }),
  detail: z
    .record(
      z.string().min(1).max(keyChars),
      z.union([z.string().max(stringChars), z.number(), z.boolean(), z.null()]),
    )
    .refine((detail) => Object.keys(detail).length <= keys, `must have at most ${keys} fields`)
    .optional()
    .meta({
      description: `At most ${keys} fields with names of at most ${keyChars} characters, and strings of at most ${stringChars} characters. Never include secrets. Not stored under zero data retention.`,
    }),
})
export type AuditReport = z.infer<typeof auditReportSchema>

export const auditReportResponseSchema = z.object({ id: idSchema })

/** The sentences of the OpenAPI document about the kinds. */
export const describeAuditKinds = (): string =>
  [
    `Kinds that the coordinator records, which the guide *audit* describes: ${Object.keys(SERVER_AUDIT_KINDS).join(', ')}.`,
    '',
    `Kinds that clients report: ${CLIENT_AUDIT_KINDS.join(', ')}.`,
  ].join('\n')
