// Schemas of shared ports (spec §2.7, §4.5), and of the listening ports of a box.
import * as z from 'zod'
import { LIMITS } from '../limits.ts'
import {
  cursorSchema,
  integerBetween,
  nextBeforeSchema,
  queryIntegerBetween,
  timestampSchema,
} from './common.ts'
import { listeningPortSchema } from './process-snapshots.ts'

/** Who may open a shared port. */
export const PORT_AUDIENCES = ['members', 'anyone', 'public'] as const
export type PortAudience = (typeof PORT_AUDIENCES)[number]

const audienceSchema = z.enum(PORT_AUDIENCES).meta({
  description:
    'members: signed-in members of the workspace who see the box; anyone: clients with the link, which contains a secret; public: all clients',
})

const idSchema = z.string().meta({ description: 'starts with shr_' })

export const portShareSchema = z
  .object({
    id: idSchema,
    boxId: z.string(),
    hostname: z.string().meta({ description: 'the name of the box' }),
    port: z.int(),
    slug: z.string().meta({ description: 'the first label of the host name; renaming the box keeps it' }),
    access: audienceSchema,
    url: z.string().nullable().meta({
      description:
        'the link. The link for anyone contains a secret, and only the response that created it has this link: it is null in all others',
    }),
    origin: z.string().meta({ description: 'the origin of the link, without its secret' }),
    rewriteHost: z.boolean().meta({
      description:
        'true: the box gets requests with `Host: localhost:<port>`, for servers that refuse other names',
    }),
    expiresAt: timestampSchema.nullable().meta({ description: 'null: links for members do not expire' }),
    createdBy: z.string().meta({ description: 'user:<id> or key:<id>' }),
    createdAt: timestampSchema,
    openCount: z.int().meta({ description: 'how often the link was opened; up to ten seconds late' }),
    lastOpenedAt: timestampSchema.nullable(),
  })
  .meta({ id: 'PortShare' })
export type PortShare = z.infer<typeof portShareSchema>

const { min, max, default: defaultSeconds } = LIMITS.shareLinkSeconds

/** POST /boxes/{id}/port-shares. */
export const createPortShareRequestSchema = z
  .strictObject({
    port: integerBetween(1, 65_535),
    access: audienceSchema.optional().meta({
      description: 'default: members. Without it, a link that the port already has is returned',
    }),
    expiresIn: integerBetween(min, max)
      .optional()
      .meta({
        description: `lifetime of a link for anyone or a public one, in seconds; default ${defaultSeconds}`,
      }),
    rewriteHost: z
      .boolean()
      .optional()
      .meta({ description: 'default: false. Also changes the setting of a link that the port already has' }),
  })
  .refine(({ access, expiresIn }) => expiresIn === undefined || access === 'anyone' || access === 'public', {
    path: ['expiresIn'],
    error: 'must be given only with access anyone or public: links for members do not expire',
  })
  .meta({ id: 'CreatePortShare' })
export type CreatePortShareRequest = z.infer<typeof createPortShareRequestSchema>

export const createPortShareResponseSchema = z
  .object({
    share: portShareSchema,
    replaced: z.object({ id: idSchema, access: audienceSchema }).optional().meta({
      description: 'the link of another audience that the port had, which has been revoked',
    }),
  })
  .meta({ id: 'CreatePortShareResponse' })
export type CreatePortShareResponse = z.infer<typeof createPortShareResponseSchema>

/** DELETE /port-shares/{id}. */
export const revokePortShareResponseSchema = z.object({ revoked: z.literal(true) })

/** POST /port-shares/{id}/open. */
export const openPortShareResponseSchema = z
  .object({
    url: z.string().meta({ description: 'can be opened once' }),
    expiresAt: timestampSchema.meta({ description: 'when the URL expires, ten minutes after the request' }),
  })
  .meta({ id: 'OpenPortShareResponse' })

const modeSchema = z
  .union([
    z.object({ allowed: z.literal(true) }),
    z.object({ allowed: z.literal(false), error: z.string(), message: z.string() }),
  ])
  .meta({ id: 'PortShareMode' })
export type PortShareMode = z.infer<typeof modeSchema>

export const listeningSchema = z
  .object({
    at: timestampSchema.meta({ description: 'when the box last confirmed the list' }),
    ports: z.array(listeningPortSchema).meta({ description: 'listening TCP ports, ascending' }),
  })
  .meta({ id: 'Listening' })
export type Listening = z.infer<typeof listeningSchema>

const listFields = {
  enabled: z.boolean().meta({ description: 'whether this deployment shares ports with members' }),
  linksEnabled: z.boolean().meta({
    description: 'whether this deployment shares ports by links that need no membership',
  }),
  modes: z
    .object({ members: modeSchema, anyone: modeSchema, public: modeSchema } satisfies Record<
      (typeof PORT_AUDIENCES)[number],
      unknown
    >)
    .meta({ description: 'by audience: what sharing another port would respond' }),
  shares: z.array(portShareSchema).meta({
    description:
      'the links that are neither revoked nor expired, oldest first. It includes links that the deployment or the policy shareLinks has turned off',
  }),
}

/** GET /port-shares. */
export const portShareListSchema = z
  .object({
    ...listFields,
    nextBefore: nextBeforeSchema.optional(),
  })
  .meta({ id: 'PortShareList' })
export type PortShareList = z.infer<typeof portShareListSchema>

const { portSharePage } = LIMITS
// Not in the spec.
export const listPortSharesQuerySchema = z.object({
  limit: queryIntegerBetween(portSharePage.min, portSharePage.max)
    .optional()
    .meta({ description: `a page, newest first; default: all; with before: ${portSharePage.max}` }),
  before: cursorSchema,
})
/** Fields that are not listed: bad_request. */
export const LIST_PORT_SHARES_ERROR_CODES = { before: 'invalid_cursor' } as const
export type ListPortSharesQuery = z.infer<typeof listPortSharesQuerySchema>

/** GET /boxes/{id}/port-shares. */
export const portSharesSchema = z
  .object({
    ...listFields,
    listening: listeningSchema.nullable().meta({
      description: 'null when the box has not reported for three minutes, and while it is suspended',
    }),
  })
  .meta({ id: 'PortShares' })
export type PortShares = z.infer<typeof portSharesSchema>
