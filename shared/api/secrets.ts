// Schemas of secrets, their grants and mounts (spec §2.8, §4.10).
import * as z from 'zod'
import { ENV_NAME_PATTERN, SECRET_NAME_PATTERN } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { SECRET_LOCATIONS } from '../secret-locations.ts'
import { ENV_NAME_RULE, emailSchema, NO_NUL_RULE, noNul, timestampSchema } from './common.ts'

export const SECRET_NAME_RULE = `must be 1 to ${LIMITS.secretNameChars} uppercase letters, digits and underscores, and not start with a digit`
/** A placeholder without its prefix. */
export const PLACEHOLDER_PATTERN = /dcpsec_[0-9a-hjkmnp-tv-z]{32}/
/** What a program of a box sees instead of the value. An SDK that checks the shape of a key needs its prefix. */
export const PLACEHOLDER_PREFIX_PATTERN = /^[A-Za-z0-9_.-]{0,32}$/

const idSchema = z.string().meta({ description: 'starts with sec_' })
const nameSchema = z.string().regex(SECRET_NAME_PATTERN, SECRET_NAME_RULE)
const descriptionSchema = z
  .string()
  .max(LIMITS.secretDescriptionChars, `must have at most ${LIMITS.secretDescriptionChars} characters`)
  .refine(noNul, NO_NUL_RULE)
const VALUE_RULE = `must be 1 byte to ${LIMITS.secretValueBytes / 1024} KiB of text without control characters other than tabs and line breaks`
const valueSchema = z
  .string()
  .refine(
    (text) =>
      text.length > 0 &&
      Buffer.byteLength(text) <= LIMITS.secretValueBytes &&
      !/(?![\t\r\n])\p{Cc}/u.test(text),
    VALUE_RULE,
  )
  .meta({
    description:
      'never returned. A value with several lines is not used in a header, except in `Authorization: Basic`, which encodes it',
  })
const HOSTS_RULE = `must be a list of at most ${LIMITS.secretHosts} host names`
/** The service checks each host: invalid_host. */
const hostsSchema = z
  .array(z.string().max(255, HOSTS_RULE), HOSTS_RULE)
  .max(LIMITS.secretHosts, HOSTS_RULE)
  .meta({
    id: 'SecretHosts',
    description:
      'the hosts in whose HTTPS requests the value is used, in lowercase: a host name, or `*.` and a domain for all names below it, but not the domain itself. Empty: the value is used nowhere',
  })
const LOCATIONS_RULE = `must be a list of one or more of ${SECRET_LOCATIONS.join(', ')}`
const locationsSchema = z
  .array(z.enum(SECRET_LOCATIONS, LOCATIONS_RULE), LOCATIONS_RULE)
  .min(1, LOCATIONS_RULE)
  .max(SECRET_LOCATIONS.length, LOCATIONS_RULE)
  .meta({
    id: 'SecretLocations',
    description:
      'where the value is used in a request: header, the default; query, the values of the query; path, the path; body, a form or JSON of up to 64 KiB',
  })
const envNameSchema = z
  .string()
  .regex(ENV_NAME_PATTERN, ENV_NAME_RULE)
  .max(128, 'must have at most 128 characters')
  .meta({ description: 'the variable of the box that has the placeholder' })

export const secretGrantSchema = z
  .object({
    id: z.string().meta({ description: 'starts with sgr_' }),
    boxId: z.string().nullable(),
    hostname: z.string().nullable().meta({ description: 'the name of the box when it was granted' }),
    userId: z.string().nullable().meta({ description: 'boxes of this owner may use the secret' }),
    email: z.string().nullable(),
    createdAt: timestampSchema,
  })
  .meta({ id: 'SecretGrant' })
export type SecretGrant = z.infer<typeof secretGrantSchema>

export const SECRET_SCOPES = ['workspace', 'granted'] as const
export type SecretScope = (typeof SECRET_SCOPES)[number]
export const secretSchema = z
  .object({
    id: idSchema,
    name: z.string(),
    description: z.string().nullable(),
    hosts: z.array(z.string()),
    in: z.array(z.enum(SECRET_LOCATIONS)).meta({ description: 'where the value is used in a request' }),
    placeholder: z.string().meta({ description: 'what boxes have instead of the value; it never changes' }),
    mountCount: z.int(),
    scope: z.enum(SECRET_SCOPES).meta({
      description:
        'workspace: the secret has no grants, and every box that is not restricted may use it; granted: only the boxes that a grant covers, which are none without grants',
    }),
    grants: z.array(secretGrantSchema),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
    lastRotatedAt: timestampSchema.nullable(),
  })
  .meta({ id: 'Secret' })
export type Secret = z.infer<typeof secretSchema>

const GRANTEE_RULE = 'must have exactly one of boxId, userId and email'
export const granteeSchema = z
  .strictObject({
    boxId: z.string().optional(),
    userId: z.string().optional(),
    email: emailSchema.optional(),
  })
  .refine(
    (grantee) => Object.values(grantee).filter((value) => value !== undefined).length === 1,
    GRANTEE_RULE,
  )
  .meta({ id: 'Grantee', description: GRANTEE_RULE })
export type Grantee = z.infer<typeof granteeSchema>

export const createSecretRequestSchema = z
  .strictObject({
    name: nameSchema,
    value: valueSchema,
    description: descriptionSchema.nullish(),
    hosts: hostsSchema.optional(),
    in: locationsSchema.optional(),
    grants: z
      .array(granteeSchema)
      .max(LIMITS.secretGrants)
      .optional()
      .meta({ description: 'written with the secret, or nothing is written' }),
    placeholderPrefix: z
      .string()
      .regex(PLACEHOLDER_PREFIX_PATTERN, 'must be at most 32 letters, digits and the characters _ . -')
      .optional()
      .meta({
        description:
          'public text before the placeholder, for clients that check the shape of a key, such as `xoxb-`',
      }),
  })
  .meta({ id: 'CreateSecret' })
export type CreateSecretRequest = z.infer<typeof createSecretRequestSchema>

export const patchSecretRequestSchema = z
  .strictObject({
    value: valueSchema.optional().meta({ description: 'the new value; the placeholder stays' }),
    description: descriptionSchema.nullish(),
    hosts: hostsSchema.optional(),
    in: locationsSchema.optional(),
    scope: z
      .literal('workspace', 'must be workspace: a grant limits a secret')
      .optional()
      .meta({ description: 'removes the grants: every box that is not restricted may use the secret' }),
  })
  .refine(
    (patch) => Object.keys(patch).length > 0,
    'must have at least one of value, description, hosts, in and scope',
  )
  .meta({ id: 'PatchSecret' })
export type PatchSecretRequest = z.infer<typeof patchSecretRequestSchema>

export const secretResponseSchema = z.object({ secret: secretSchema })
export const secretListSchema = z.object({ secrets: z.array(secretSchema) })
export const listSecretsQuerySchema = z.object({
  box: z.string().optional().meta({ description: 'id of a box: only the secrets that it may mount' }),
})
export const secretGrantResponseSchema = z.object({ grant: secretGrantSchema })

export const secretUseSchema = z
  .object({
    boxId: z.string(),
    hostname: z.string().nullable().meta({ description: 'null: the box has been deleted' }),
    host: z.string(),
    firstAt: timestampSchema,
    lastAt: timestampSchema,
    count: z.int().meta({ description: 'requests; up to a second late' }),
  })
  .meta({ id: 'SecretUse' })
export type SecretUse = z.infer<typeof secretUseSchema>
export const secretUsageSchema = z.object({
  uses: z.array(secretUseSchema).meta({ description: `newest first, at most ${LIMITS.secretUsageRows}` }),
})

export const secretMountSchema = z
  .object({
    id: z.string().meta({ description: 'starts with smt_' }),
    envName: z.string(),
    secret: secretSchema.pick({ id: true, name: true, placeholder: true, hosts: true }),
  })
  .meta({ id: 'SecretMount' })
export type SecretMount = z.infer<typeof secretMountSchema>

/** Whether requests of the box reach the coordinator, as its agent has tested after the last mount. */
export const BROKER_STATES = ['unknown', 'ready', 'failed'] as const
export const secretMountListSchema = z.object({
  mounts: z.array(secretMountSchema),
  broker: z
    .object({
      state: z.enum(BROKER_STATES),
      message: z.string().nullable().meta({ description: 'why the test has failed' }),
      checkedAt: timestampSchema.nullable(),
    })
    .meta({
      description:
        'whether secrets can be used on the box: its agent sends a test request after each change. unknown: not tested since the agent has connected, or no secret is mounted',
    }),
})
export type BrokerTest = z.infer<typeof secretMountListSchema>['broker']
export const secretMountResponseSchema = z.object({ mount: secretMountSchema })

export const mountSecretRequestSchema = z
  .strictObject({
    secretId: z.string().optional(),
    name: nameSchema.optional(),
    value: valueSchema.optional(),
    envName: envNameSchema,
    hosts: hostsSchema.optional(),
    in: locationsSchema.optional(),
    description: descriptionSchema.nullish(),
  })
  .meta({
    id: 'MountSecret',
    description:
      'secretId and envName for an existing secret; or name, value and envName, and optionally hosts, in and description, for a new one, which is granted to this box',
  })
export type MountSecretRequest = z.infer<typeof mountSecretRequestSchema>
