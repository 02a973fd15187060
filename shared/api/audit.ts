// Schemas of the audit log (spec §2.7b, §4.12).
import { z } from 'zod'
import { AUDIT_ACTOR_KINDS, AUDIT_ORIGINS } from '../field-values.ts'
import { isId, isUuid } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import { queryIntegerBetween, queryOffset, timestampSchema } from './common.ts'
import { INSTANT_FORMAT, queryInstantSchema } from './request-times.ts'

/** The kinds of events that clients may report (spec §4.12). */
export const CLIENT_AUDIT_KINDS = ['exec', 'file.upload', 'file.download', 'prompt', 'desktop.start'] as const

/** The kinds of events that the coordinator records, with a description for the documentation. */
export const SERVER_AUDIT_KINDS = {
  'session.sign_in': 'a user signed in',
  'session.sign_out':
    'a session was ended by its user, or as the oldest of more than 50 sessions of the user',
  'session.switch': 'a session changed its workspace',
  'sign_in.rejected': 'a sign-in with a wrong or expired code',
  'key.create': 'an API key was created',
  'key.update': 'the name, expiry or access of an API key was changed',
  'key.rotate': 'an API key got a new secret',
  'key.revoke': 'an API key was revoked',
  'key.verify': 'the emailed code of a new agent account was confirmed',
  'ticket.create': 'a terminal ticket was created',
  'member.invite': 'a member was invited',
  'member.update': 'the role, name or email address of a member was changed',
  'member.remove': 'a member was removed',
  'workspace.create': 'the workspace was created',
  'workspace.update': 'the name or the data retention of the workspace was changed',
  'workspace.close': 'the closing of the workspace was requested',
  'workspace.reopen': 'a closing workspace was reopened',
  'policy.update': 'policies were changed',
  'agent_rollout.update':
    'the share of the boxes that get new agent builds was changed, or their upgrades were paused or resumed',
  'audit.export': 'the audit log was downloaded as CSV',
  'audit.prune': 'expired events were deleted',
  'audit_sink.update': 'the export of the audit log was configured',
  'audit_sink.delete': 'the export of the audit log was removed',
  'access.denied':
    'a request was refused: the credential has expired or been revoked, or does not allow it; repeated refusals of a credential on a route are recorded once a minute',
  'machine.token_create': 'a token for enrolling a machine was created',
  'machine.token_revoke': 'a token for enrolling a machine was revoked',
  'machine.enroll': 'a machine was enrolled as a box; the actor is the creator of the token',
  'box.create': 'a box was created',
  'box.update': 'the name, settings or environment variables of a box were changed',
  'box.wake': 'a box was woken',
  'box.suspend': 'a box was suspended, or the processes of a suspended box were terminated',
  'box.sleep': 'a suspended box was packed into an archive, which frees its disk',
  'box.resize': 'the tier of a box was changed',
  'box.move': 'a box was moved to another region',
  'box.fork': 'a box was forked',
  'box.delete': 'a box was deleted',
  'box.connect': 'a terminal or the desktop was opened; the event does not prove that a client used it',
  'box.forward':
    'a TCP connection to a port of a box was opened; at most one event an hour for each credential, box and port',
  'box.desktop_start': 'a mode of the desktop of a box was started',
  'box.desktop_stop': 'a mode of the desktop of a box was stopped',
  'port_share.create': 'a link to a port of a box was created',
  'port_share.update': 'the setting rewriteHost of a link was changed',
  'port_share.revoke': 'a link was revoked, or replaced by one of another audience',
  'port_share.open': 'the actor started to view a link for members in a browser',
  'environment.create': 'an environment was created',
  'environment.update':
    'the name, description or configuration of an environment was changed; the event has the names of what changed, and no values',
  'environment.default': 'an environment became the default for new boxes, or stopped being it',
  'environment.upgrade': 'boxes of an environment were pinned to its latest version',
  'environment.delete': 'an environment was deleted',
  'box.repos_update': 'the update of the repositories of a box was requested',
  'box.restrict': 'a box became restricted',
  'secret.create': 'a secret was created',
  'secret.update':
    'the description, the hosts, the scope or the locations in requests of a secret were changed; the event has the added and removed hosts and locations, and the scope workspace when its grants were removed',
  'secret.rotate': 'a secret got a new value',
  'secret.delete': 'a secret was deleted',
  'secret.grant': 'a secret was granted to a box or a member',
  'secret.ungrant': 'a grant of a secret was removed',
  'secret.mount': 'a secret was mounted on a box',
  'secret.unmount':
    'a secret was unmounted from a box, by a request or because a grant or the box no longer allows it',
  'aws_role.connect': 'an AWS role was connected',
  'aws_role.verify': 'it was verified whether the workspace can assume an AWS role',
  'aws_role.disconnect': 'an AWS role was disconnected',
  'aws_connect.create': 'a link that connects an AWS role was created; it cancels the previous one',
  'aws_connect.cancel': 'a link that connects an AWS role was cancelled',
  'federation.rotate': 'the signing key of the identity issuer was rotated by a request',
  'snapshot.create': 'a snapshot was taken',
  'snapshot.restore': 'a box was created from a snapshot',
  'snapshot.delete': 'a snapshot was deleted',
  'template.create': 'a template was taken, or a snapshot became a template',
  'template.delete': 'a template became a snapshot',
  'billing.low': 'the balance became low',
  'billing.empty': 'the balance became empty; the boxes are suspended',
  'billing.credit': 'an operator added credit, or removed some',
  'billing.hold': 'an operator paused the workspace; its boxes are suspended',
  'billing.release': 'the workspace is not paused any more',
  'billing.payment': 'a payment by card was received',
  'billing.payment_failed': 'a payment from the saved card failed',
  'billing.refund': 'a payment by card was refunded',
  'billing.card_remove': 'the saved card was removed',
  'image.pull': 'the download of an image was requested',
  'image.remove': 'an image was removed',
  'command_history.delete': 'records of the command history were deleted',
} as const

export type ServerAuditKind = keyof typeof SERVER_AUDIT_KINDS
export type ClientAuditKind = (typeof CLIENT_AUDIT_KINDS)[number]
export type AuditKind = ServerAuditKind | ClientAuditKind
export const AUDIT_KINDS = [
  ...(Object.keys(SERVER_AUDIT_KINDS) as ServerAuditKind[]),
  ...CLIENT_AUDIT_KINDS,
] as const

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
  since: queryInstantSchema
    .optional()
    .meta({ description: `Events at or after this time. ${INSTANT_FORMAT}` }),
  until: queryInstantSchema.optional().meta({ description: `Events before this time. ${INSTANT_FORMAT}` }),
  kind: z
    .string()
    .transform((text, context): AuditKind[] => {
      const kinds = text.split(',')
      if (kinds.every(isKind)) return kinds
      context.addIssue(`must be one kind, or several separated by commas, of: ${AUDIT_KINDS.join(', ')}`)
      return z.NEVER
    })
    .optional()
    .meta({
      description: `One kind, or several separated by commas: ${AUDIT_KINDS.join(', ')}. GET /audit describes them.`,
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
    'Kinds that the coordinator records:',
    ...Object.entries(SERVER_AUDIT_KINDS).map(([kind, description]) => `- \`${kind}\`: ${description}`),
    '',
    `Kinds that clients report: ${CLIENT_AUDIT_KINDS.map((kind) => `\`${kind}\``).join(', ')}.`,
  ].join('\n')
