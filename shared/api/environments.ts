// Schemas of environments (spec §2.12, §4.9): what new boxes start with.
import * as z from 'zod'
import { ENV_NAME_PATTERN } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { ENV_NAME_RULE, NO_NUL_RULE, noNul, timestampSchema } from './common.ts'
import { imageReferenceSchema } from './images.ts'

export const ENVIRONMENT_NAME_PATTERN = /^[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,62}[a-zA-Z0-9])?$/
export const ENVIRONMENT_NAME_RULE =
  'must be 1 to 64 letters, digits, periods, underscores and hyphens, start and end with a letter or digit, not start with env_, and not be none'

const idSchema = z.string().meta({ description: 'starts with env_' })
const nameSchema = z
  .string()
  .regex(ENVIRONMENT_NAME_PATTERN, ENVIRONMENT_NAME_RULE)
  // The box command has `--environment none`.
  .refine((name) => !name.startsWith('env_') && name !== 'none', ENVIRONMENT_NAME_RULE)
const descriptionSchema = z
  .string()
  .max(
    LIMITS.environmentDescriptionChars,
    `must have at most ${LIMITS.environmentDescriptionChars} characters`,
  )
  .refine(noNul, NO_NUL_RULE)

/** What a box may use of the credentials of its workspace without a mount of its own. */
export const CREDENTIAL_CHANNELS = ['git', 'cloud', 'codingAgents'] as const
export type CredentialChannel = (typeof CREDENTIAL_CHANNELS)[number]

export const environmentTogglesSchema = z
  .object({
    restricted: z.boolean().meta({
      description:
        'safe for third parties: boxes of the environment are restricted. They get no secrets, no secret files, no cloud tokens and no links that need no membership, and the three channels have no effect',
    }),
    git: z.boolean(),
    cloud: z.boolean(),
    codingAgents: z.boolean(),
  })
  .meta({
    id: 'EnvironmentToggles',
    description:
      'git, cloud, codingAgents: credential channels. With cloud, the boxes get the AWS roles of the workspace. With one of them, each new box gets the secrets of the workspace that have a well-known name of the channel, such as GITHUB_TOKEN, HCLOUD_TOKEN or ANTHROPIC_API_KEY, mounted under this name, as far as their grants allow it',
  })
/** A request may have some of them. */
const toggleChangesSchema = z
  .strictObject(environmentTogglesSchema.shape)
  .partial()
  .meta({ id: 'ChangeEnvironmentToggles' })
export type EnvironmentToggles = z.infer<typeof environmentTogglesSchema>
export const NO_TOGGLES: EnvironmentToggles = {
  restricted: false,
  git: false,
  cloud: false,
  codingAgents: false,
}

const envNameSchema = z.string().regex(ENV_NAME_PATTERN, ENV_NAME_RULE).max(128)
const varSchema = z.strictObject({ name: envNameSchema, value: z.string().refine(noNul, NO_NUL_RULE) })

/** `~/` is the home directory of the box. */
const PATH_RULE =
  'must start with / or ~/, have at most 1024 bytes, name a file, and contain no NUL, no line break and no . or .. as a part'
export const isEnvironmentPath = (path: string): boolean =>
  /^(?:~\/|\/)[^\0\r\n]*[^/\0\r\n]$/.test(path) &&
  Buffer.byteLength(path) <= 1024 &&
  path
    .split('/')
    .slice(1)
    .every((part) => part !== '' && part !== '.' && part !== '..')
const pathSchema = z.string().refine(isEnvironmentPath, PATH_RULE)
const MODE_RULE = 'must be an octal mode between 0400 and 0777 that lets the owner read, such as 0600'
const modeSchema = z.string().regex(/^0?[4-7][0-7]{2}$/, MODE_RULE)

/** A file as clients write it. The content is stored encrypted, and no response has it. */
export const environmentFileInputSchema = z
  .strictObject({
    path: pathSchema,
    content: z.string().optional().meta({ description: 'text; or contentBase64' }),
    contentBase64: z.base64('must be base64').optional(),
    mode: modeSchema.optional().meta({ description: 'octal; default 0600' }),
  })
  .refine(
    ({ content, contentBase64 }) => (content === undefined) !== (contentBase64 === undefined),
    'must have exactly one of content and contentBase64',
  )
  .meta({ id: 'EnvironmentFile' })
export type EnvironmentFileInput = z.infer<typeof environmentFileInputSchema>
export const environmentFileSchema = z.object({
  path: z.string(),
  mode: z.string(),
  size: z.int().meta({ description: 'bytes' }),
  updatedAt: timestampSchema,
})
export type EnvironmentFile = z.infer<typeof environmentFileSchema>

const REPO_RULE =
  'must be an https:// URL of a git repository without user and password, or owner/name of GitHub'
export const REPO_PATTERN =
  /^(?:https:\/\/[a-z0-9.-]+(?::\d{1,5})?\/[A-Za-z0-9._~%/-]+|[A-Za-z0-9_-]+\/[A-Za-z0-9_.-]+)$/
export const environmentRepoSchema = z
  .strictObject({
    repo: z.string().max(1024, REPO_RULE).regex(REPO_PATTERN, REPO_RULE),
    path: pathSchema
      .optional()
      .meta({ description: 'the directory of the clone; default: `~/` and the last part of the URL' }),
    ref: z
      .string()
      .regex(/^(?!-)[A-Za-z0-9][A-Za-z0-9._/-]{0,254}$/, 'must be the name of a branch or a tag, or a commit')
      .optional()
      .meta({ description: 'a branch, a tag or a commit; default: the default branch' }),
    secret: z.string().optional().meta({
      description:
        'the name of a secret of the workspace, for a private repository: git sends its placeholder, so that no token is on the box',
    }),
  })
  .meta({ id: 'EnvironmentRepo' })
export type EnvironmentRepo = z.infer<typeof environmentRepoSchema>

export const environmentSchema = z
  .object({
    id: idSchema,
    name: z.string(),
    description: z.string().nullable(),
    isDefault: z.boolean().meta({ description: 'new boxes that name no environment get this one' }),
    latestVersionNo: z.int().meta({ description: '1, and one more with each change of the configuration' }),
    vars: z.array(z.object({ name: z.string(), value: z.string() })),
    files: z.array(environmentFileSchema).meta({ description: 'without their contents' }),
    repos: z.array(environmentRepoSchema),
    image: z.string().nullable().meta({
      description:
        'the image of new boxes that name none; null: the default image of their region. A change does not concern boxes that exist',
    }),
    toggles: environmentTogglesSchema,
    boxCount: z.int().meta({ description: 'boxes that are not deleted and use any version' }),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
  })
  .meta({ id: 'Environment', description: 'An environment with the configuration of its latest version' })
export type Environment = z.infer<typeof environmentSchema>

const configFields = {
  vars: z
    .record(envNameSchema, z.string().refine(noNul, NO_NUL_RULE))
    .optional()
    .meta({
      description: `NAME to value; at most ${LIMITS.boxEnvNames} names and ${LIMITS.boxEnvBytes / 1024} KiB`,
    }),
  files: z.array(environmentFileInputSchema).max(LIMITS.environmentFiles).optional(),
  repos: z.array(environmentRepoSchema).max(LIMITS.environmentRepos).optional(),
  image: imageReferenceSchema.nullish().meta({ description: 'null: none' }),
  toggles: toggleChangesSchema.optional(),
}
export const createEnvironmentRequestSchema = z
  .strictObject({
    name: nameSchema,
    description: descriptionSchema.nullish(),
    isDefault: z.boolean().optional(),
    ...configFields,
  })
  .meta({ id: 'CreateEnvironment' })
export type CreateEnvironmentRequest = z.infer<typeof createEnvironmentRequestSchema>
export const patchEnvironmentRequestSchema = z
  .strictObject({
    name: nameSchema.optional(),
    description: descriptionSchema.nullish(),
    isDefault: z.boolean().optional(),
    ...configFields,
  })
  .refine((patch) => Object.keys(patch).length > 0, 'must have at least one field')
  .meta({
    id: 'PatchEnvironment',
    description: 'vars, files and repos replace all of their kind; toggles replaces those that it has',
  })
export type PatchEnvironmentRequest = z.infer<typeof patchEnvironmentRequestSchema>

export const environmentResponseSchema = z.object({ environment: environmentSchema })
export const environmentListSchema = z.object({ environments: z.array(environmentSchema) })
export const setVarRequestSchema = varSchema.meta({ id: 'SetEnvironmentVariable' })
export const togglesRequestSchema = toggleChangesSchema.refine(
  (toggles) => Object.keys(toggles).length > 0,
  'must have at least one toggle',
)
export const removeFileQuerySchema = z.object({ path: z.string() })
export const removeRepoQuerySchema = z.object({ repo: z.string() })

/** Why a box was not upgraded. */
export const UPGRADE_SKIP_REASONS = {
  up_to_date: 'the box uses the latest version',
  box_failed: 'the box could not be provisioned; delete it',
  terminating: 'the box is being deleted',
} as const
const reasons = Object.keys(UPGRADE_SKIP_REASONS) as [keyof typeof UPGRADE_SKIP_REASONS]
const boxFields = { boxId: z.string(), hostname: z.string(), versionNo: z.int() }
export const upgradeResponseSchema = z
  .object({
    upgraded: z.array(
      z.object({ ...boxFields, versionNo: z.int().meta({ description: 'the version before the upgrade' }) }),
    ),
    skipped: z.array(
      z.object({
        ...boxFields,
        reason: z.enum(reasons).meta({
          description: Object.entries(UPGRADE_SKIP_REASONS)
            .map(([reason, description]) => `${reason}: ${description}`)
            .join('; '),
        }),
      }),
    ),
    latestVersionNo: z.int(),
  })
  .meta({ id: 'UpgradedEnvironment' })
export type UpgradedEnvironment = z.infer<typeof upgradeResponseSchema>

export const REPO_STATES = ['pending', 'cloning', 'ready', 'failed'] as const
export const boxRepoSchema = z
  .object({
    repo: z.string(),
    path: z.string(),
    ref: z.string().nullable(),
    state: z.enum(REPO_STATES),
    commit: z
      .string()
      .nullable()
      .meta({ description: 'the checked-out commit after the last clone or update' }),
    error: z.string().nullable(),
    updatedAt: timestampSchema,
  })
  .meta({ id: 'BoxRepo' })
export type BoxRepo = z.infer<typeof boxRepoSchema>
export const boxReposSchema = z.object({ repos: z.array(boxRepoSchema) })
