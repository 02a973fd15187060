// Schemas of API keys (spec §5): fields, and the requests to create and limit them.
import * as z from 'zod'
import { ACCESS_LEVELS } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { accessLevelsSchema } from './account.ts'
import { boxIdParamSchema } from './boxes.ts'
import {
  cursorSchema,
  displayNameSchema,
  integerBetween,
  nextBeforeSchema,
  queryFlag,
  queryIntegerBetween,
  timestampSchema,
} from './common.ts'
import { requestTimestampSchema } from './request-times.ts'

export const KEY_KINDS = ['api', 'machine'] as const
export type KeyKind = (typeof KEY_KINDS)[number]

/** The number of characters of `ending`. */
export const KEY_ENDING_CHARS = 4

export const apiKeySchema = z
  .object({
    id: z.string().meta({ description: 'key_…. Not secret' }),
    name: z.string(),
    kind: z.enum(KEY_KINDS).meta({
      description: `api: for a script or an agent. machine: the CLI signed in with it; it expires ${LIMITS.machineKeyDays} days after its last use.`,
    }),
    userId: z.string().nullable().meta({
      description: 'the user as whom the key acts; null: a key with no user, which has the role member',
    }),
    ending: z
      .string()
      .nullable()
      .meta({
        description: `the last ${KEY_ENDING_CHARS} characters of the secret, to recognise it; null: unknown`,
      }),
    createdAt: timestampSchema,
    lastUsedAt: timestampSchema.nullable().meta({
      description: 'the last request with the current secret, up to a minute late; null: not used yet',
    }),
    expiresAt: timestampSchema.nullable().meta({
      description:
        'from this instant on, requests with the key get 401 token_expired; null: never. Of a machine key, it moves with use, up to a minute late.',
    }),
    boxIds: z
      .array(z.string())
      .nullable()
      .meta({ description: 'ids of the boxes that the key may access, sorted; null: all boxes' }),
    access: accessLevelsSchema.nullable().meta({
      description: 'the level of the key per area; null: everything that the role of its user allows',
    }),
    revokedAt: timestampSchema
      .nullable()
      .meta({ description: 'from this instant on, requests with the key get 401 unauthorized' }),
  })
  .meta({ id: 'ApiKey', description: 'An API key, without its secret' })
export type ApiKey = z.infer<typeof apiKeySchema>

export const keyResponseSchema = z.object({ key: apiKeySchema })
export const keyListSchema = z.object({
  keys: z.array(apiKeySchema),
  nextBefore: nextBeforeSchema.optional(),
})
export type KeyList = z.infer<typeof keyListSchema>
export const keySecretResponseSchema = z.object({
  key: apiKeySchema,
  secret: z.string().meta({
    description:
      'dcp_…, for the header Authorization: Bearer. Only this response contains it: the coordinator stores only its hash.',
  }),
})
export type KeyWithSecret = z.infer<typeof keySecretResponseSchema>

const ACCESS_RULE = `must be "read", or a level per area (boxes: ${ACCESS_LEVELS.boxes.join(', ')}; workspace: ${ACCESS_LEVELS.workspace.join(', ')}; history: ${ACCESS_LEVELS.history.join(', ')}) that is not none for at least one area`
const limitedAccessSchema = z
  .union(
    [
      z.literal('read'),
      accessLevelsSchema.refine(
        (levels) => Object.values(levels).some((level) => level !== 'none'),
        ACCESS_RULE,
      ),
    ],
    ACCESS_RULE,
  )
  .meta({
    id: 'KeyAccess',
    description:
      'limits the key: "read" is short for {"boxes": "read", "workspace": "read"}. An absent area is none. A level includes those before it. boxes: read is reading boxes with their files, output and metrics, and snapshots, templates and operations; run is wakes, commands, terminals, prompts and the writing of files; write is all else: the creation, deletion, suspension, resize, move and settings of boxes, snapshots, templates, machines and the command history. workspace: policies, the audit log and settings. history: read is reading the command history without the level write of boxes.',
  })

const BOX_IDS_RULE = `must have 1 to ${LIMITS.keyBoxes} items`
const boxIdsSchema = z.array(boxIdParamSchema).min(1, BOX_IDS_RULE).max(LIMITS.keyBoxes, BOX_IDS_RULE).meta({
  description: `limits the key to these boxes: any other box answers 404, and workspace-wide requests answer 403 key_access_denied. Ids of boxes that the user of the key may access and that are not deleted, else 404 not_found. The order does not matter.`,
  id: 'KeyBoxes',
})

const expiresAtSchema = requestTimestampSchema.nullable()
const expiresAtRule = `in the future and at most ${LIMITS.keyExpiryDays.max} days away`

/** Strict: a misspelt limit must not create a key without that limit. */
export const createKeyRequestSchema = z
  .strictObject({
    name: displayNameSchema(LIMITS.keyNameChars).meta({ description: 'names are not unique' }),
    kind: z
      .enum(KEY_KINDS)
      .optional()
      .meta({
        description: `default: api. A machine key has no expiresAt or expiresInDays: it expires ${LIMITS.machineKeyDays} days after its last use.`,
      }),
    expiresAt: expiresAtSchema
      .optional()
      .meta({ description: `when the key expires: ${expiresAtRule}; null: never. Default: never` }),
    expiresInDays: integerBetween(LIMITS.keyExpiryDays.min, LIMITS.keyExpiryDays.max)
      .optional()
      .meta({ description: 'instead of expiresAt: in days of 24 hours' }),
    boxIds: boxIdsSchema.nullable().optional(),
    access: limitedAccessSchema.nullable().optional(),
    user: z.null().optional().meta({
      description:
        'null: a key with no user, which only an owner may create. Absent: the key acts as the user who creates it.',
    }),
  })
  .meta({ id: 'CreateKey' })
export type CreateKeyRequest = z.infer<typeof createKeyRequestSchema>

export const updateKeyRequestSchema = z
  .strictObject({
    name: displayNameSchema(LIMITS.keyNameChars).optional(),
    expiresAt: expiresAtSchema
      .optional()
      .meta({ description: `${expiresAtRule}; null: never. Not for machine keys` }),
    boxIds: boxIdsSchema.nullable().optional().meta({ description: 'null removes the limit' }),
    access: limitedAccessSchema.nullable().optional().meta({ description: 'null removes the limit' }),
  })
  .meta({ id: 'UpdateKey', description: 'The fields to change. At least one is required.' })
export type UpdateKeyRequest = z.infer<typeof updateKeyRequestSchema>

export const listKeysQuerySchema = z.object({
  revoked: queryFlag().optional().meta({ description: '1: include revoked keys' }),
  limit: queryIntegerBetween(LIMITS.keyPage.min, LIMITS.keyPage.max)
    .optional()
    .meta({ description: `default: all keys; with before: ${LIMITS.keyPage.max}` }),
  before: cursorSchema,
})
/** Fields that are not listed: bad_request. */
export const LIST_KEYS_ERROR_CODES = { before: 'invalid_cursor' } as const
export type ListKeysQuery = z.infer<typeof listKeysQuerySchema>
