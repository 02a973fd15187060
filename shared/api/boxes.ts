// Schemas of boxes (spec §2.2, §4.3): fields, states, events, jobs, vitals, and the requests to create and list boxes.

import * as z from 'zod'
import { ENV_NAME_PATTERN, type OBSERVED_STATES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { MIN_ID_PREFIX_LENGTH } from '../uuid.ts'
import {
  boxIdSchema,
  cursorSchema,
  ENV_NAME_RULE,
  emailSchema,
  integerBetween,
  NO_NUL_RULE,
  nextBeforeSchema,
  noNul,
  observedStateSchema,
  queryFlag,
  queryIntegerBetween,
  regionSchema,
  reportedIntegerSchema,
  tierSchema,
  timestampSchema,
} from './common.ts'
import { imageReferenceSchema } from './images.ts'
import {
  boxLabelsSchema,
  LABELS_RULE,
  labelChangesSchema,
  labelFilterSchema,
  labelsSchema,
} from './labels.ts'
import { machineSchema } from './machine.ts'
import { operationSchema } from './operations.ts'
import { PROVIDER_READINESS } from './prompts.ts'
import { requestTimestampSchema } from './request-times.ts'

/** managed: the coordinator creates, starts and stops the machine of the box. machine: the machine was enrolled (docs/machines.md). */
export const BOX_KINDS = ['managed', 'machine'] as const
export type BoxKind = (typeof BOX_KINDS)[number]

export const DESIRED_STATES = ['running', 'suspended', 'terminated'] as const
/** What a suspend did to the processes: frozen ones keep their memory. */
export const SUSPENDED_AS = ['frozen', 'stopped'] as const
export type SuspendedAs = (typeof SUSPENDED_AS)[number]
export type ObservedState = (typeof OBSERVED_STATES)[number]
export type DesiredState = (typeof DESIRED_STATES)[number]

/** A box id in a path. Any other text is not rejected here: the response then names it. */
export const boxIdParamSchema = z
  .string()
  .toLowerCase()
  .meta({ format: 'uuid', param: { id: 'boxId' } })

export const BOX_NAME_PATTERN = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/
export const BOX_NAME_RULE =
  'must be 1 to 32 lowercase letters, digits and hyphens, and start and end with a letter or digit'

/** The levels of boxes that run on the coordinator's machine, the strongest first. */
export const ISOLATION_LEVELS = ['bubblewrap', 'namespaces', 'process'] as const
/** The levels of boxes that an engine runs. */
export const ENGINE_ISOLATION_LEVELS = ['container', 'vm'] as const
export const BOX_NETWORKS = ['own', 'host'] as const
export const isolationSchema = z
  .object({
    level: z.enum([...ISOLATION_LEVELS, ...ENGINE_ISOLATION_LEVELS]).meta({
      description:
        'bubblewrap, namespaces: separate file-system view, processes and hostname; process: separate home directory. Under a root coordinator each box also has its own uid. container: a container with a root file system of its own; vm: a virtual machine.',
    }),
    limits: z.array(z.enum(['cpu', 'memory', 'pids'])).meta({
      description:
        'the limits that cgroups enforce: cpu and memory of the tier; pids: 4096 processes and threads',
    }),
    network: z.enum(BOX_NETWORKS).meta({
      description:
        'own: the box has its own loopback interface and outbound connections, and cannot reach the loopback addresses of the host; host: the box shares the network of the host',
    }),
  })
  .meta({ id: 'Isolation', description: 'How the box is isolated from its host and from other boxes' })
export type Isolation = z.infer<typeof isolationSchema>
export type LocalIsolationLevel = (typeof ISOLATION_LEVELS)[number]

export const envVarSchema = z.object({ name: z.string(), value: z.string() })

export const boxSchema = z
  .object({
    id: boxIdSchema,
    hostname: z.string(),
    kind: z.enum(BOX_KINDS).meta({
      description:
        'machine: a machine of its own that was enrolled with POST /machines. Its power, size and files are not managed by the coordinator. managed: every other box.',
    }),
    tier: tierSchema.meta({
      description: 'of a machine: the largest tier that is not larger than the machine',
    }),
    region: regionSchema.meta({ description: 'of a machine: a label' }),
    desiredRegion: regionSchema.nullable(),
    desiredState: z.enum(DESIRED_STATES),
    observedState: observedStateSchema,
    suspendedAs: z.enum(SUSPENDED_AS).nullable().meta({
      description:
        'of a suspended box: frozen: its processes keep their memory and continue when the box is woken; stopped: its processes have been terminated. Otherwise null.',
    }),
    autoPauseMin: z.int().nullable(),
    pauseAt: timestampSchema.nullable(),
    deleteAt: timestampSchema.nullable().meta({
      description: 'when the coordinator deletes the box, in whatever state; null: never',
    }),
    autoSnapshotHours: z.int().nullable(),
    autoSnapshotKeep: z.int(),
    environmentId: z.string().nullable(),
    environmentVersionNo: z.int().nullable(),
    envVars: z.array(envVarSchema),
    labels: boxLabelsSchema,
    restricted: z.boolean(),
    ownerUserId: z.string(),
    quietHoursExempt: z.boolean(),
    image: z.string().nullable().meta({
      description:
        'the image of the box, as it was requested; null: the box uses the programs of the machine on which it runs',
    }),
    imageDigest: z.string().nullable().meta({
      description: 'the content of the image, such as sha256:…; null: not known yet, or the box has no image',
    }),
    isolation: isolationSchema.nullable().meta({ description: 'null until the box has a machine' }),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
  })
  .meta({ id: 'Box' })
export type Box = z.infer<typeof boxSchema>

export const boxEventSchema = z
  .object({
    id: z.string(),
    fromState: observedStateSchema.nullable(),
    toState: observedStateSchema,
    reason: z.string(),
    code: z.string().nullable().meta({
      description:
        'of a box that could not be created because of its image: an error code, such as image_not_found. Otherwise null',
    }),
    actor: z.string().meta({ description: 'user:<id>, key:<id> or system' }),
    at: timestampSchema,
  })
  .meta({ id: 'BoxEvent' })
export type BoxEvent = z.infer<typeof boxEventSchema>

export const JOB_OPS = [
  'create',
  'enroll',
  'wake',
  'suspend',
  'stop',
  'sleep',
  'resize',
  'move',
  'recover',
  'reconnect',
  'clean_up',
  'delete',
] as const
export const jobSchema = z
  .object({
    op: z.enum(JOB_OPS),
    step: z.string(),
    attempt: z.int(),
    lastError: z.string().nullable(),
    nextRetryAt: timestampSchema.nullable(),
  })
  .meta({ id: 'Job', description: 'The state change in progress' })
export type Job = z.infer<typeof jobSchema>
export type JobOp = (typeof JOB_OPS)[number]

const readinessSchema = z.enum(PROVIDER_READINESS)
const codingAgentsSchema = z
  .object({
    claude: readinessSchema,
    codex: readinessSchema,
    opencode: readinessSchema,
    pi: readinessSchema,
  })
  .meta({
    id: 'CodingAgents',
    description:
      'Which coding agents can be prompted. not_installed: the program is not on the PATH of a login shell, or does not work; opencode and pi are then installed by the first prompt. ready: there is a credential, which may have expired',
  })
export type CodingAgents = z.infer<typeof codingAgentsSchema>

const percentSchema = z.number().min(0).max(100).nullable()
export const vitalsSchema = z
  .object({
    cpu_pct: percentSchema,
    mem_pct: percentSchema,
    disk_pct: percentSchema,
    idle_for_sec: reportedIntegerSchema,
    listeners_count: z.int().min(0).max(1_000_000),
    agent_version: z.string().max(64),
    // Agents of an earlier version do not report it.
    coding_agents: codingAgentsSchema.optional(),
  })
  .meta({
    id: 'Vitals',
    description:
      'From the last heartbeat. Percentages, 0 to 100, are relative to the limits of the box; null: no sample yet, or the figure is not known for this box.',
  })
export type Vitals = z.infer<typeof vitalsSchema>

export const boxDetailSchema = z
  .object({
    box: boxSchema,
    state: z
      .object({
        desired: z.enum(DESIRED_STATES),
        observed: observedStateSchema,
        connected: z.boolean().meta({ description: 'whether the agent is connected' }),
        since: timestampSchema.meta({ description: 'when the observed state was entered' }),
        lastHeartbeatAt: timestampSchema.nullable(),
      })
      .meta({ description: 'Desired and observed state, and the connection of the agent' }),
    vitals: vitalsSchema.nullable(),
    machine: machineSchema.nullable().meta({ description: 'null until the agent has reported it' }),
    size: z.object({ cpus: z.int(), memoryBytes: z.int(), diskBytes: z.int() }).nullable().meta({
      description:
        'what the box has: the size of its tier, or less where the machine that runs it has less; null for a machine that was enrolled. Which limits are enforced is in box.isolation.',
    }),
    events: z.array(boxEventSchema).max(LIMITS.boxEvents).meta({ description: 'newest first' }),
    job: jobSchema.nullable(),
    pausesSurvived: z.int().meta({
      description: 'how many times the processes of the box have continued with their memory after a suspend',
    }),
    environment: z
      .object({
        ...{ id: z.string(), name: z.string(), versionNo: z.int(), latestVersionNo: z.int() },
        deletedAt: timestampSchema.nullable().meta({
          description: 'when the environment was deleted: the box keeps its version; null: it was not',
        }),
      })
      .nullable(),
    envVars: z.array(envVarSchema),
    restricted: z.boolean(),
  })
  .meta({ id: 'BoxDetail' })
export type BoxDetail = z.infer<typeof boxDetailSchema>

export const boxResponseSchema = z.object({ box: boxSchema })

export const suspendQuerySchema = z.object({
  stop: queryFlag().optional().meta({
    description: '1: terminate the processes, also of a box that is suspended and frozen.',
  }),
})

export const resizeRequestSchema = z.strictObject({ target_tier: tierSchema }).meta({ id: 'ResizeBox' })
export const RESIZE_ERROR_CODES = { target_tier: 'invalid_tier' } as const
export const moveRequestSchema = z.strictObject({ region: regionSchema }).meta({ id: 'MoveBox' })
const RECEIVER_RULE = 'must have either ownerUserId or email'
export const giveRequestSchema = z
  .strictObject({
    ownerUserId: z.string().refine(noNul, NO_NUL_RULE).optional().meta({
      description: 'the id of the member who gets the box, as in GET /members',
    }),
    email: emailSchema.optional().meta({ description: 'the email address of this member' }),
  })
  .refine(({ ownerUserId, email }) => (ownerUserId === undefined) !== (email === undefined), RECEIVER_RULE)
  .meta({ id: 'GiveBox', description: RECEIVER_RULE })
export type GiveBoxRequest = z.infer<typeof giveRequestSchema>
export const MOVE_ERROR_CODES = { region: 'invalid_region' } as const

export const boxListSchema = z.object({
  boxes: z.array(boxSchema),
  nextBefore: nextBeforeSchema.optional(),
})
export type BoxList = z.infer<typeof boxListSchema>
export const deleteBoxResponseSchema = z.object({ box: boxSchema, operation: operationSchema })

const { ttlMinutes, deleteAfterMinutes, autoPauseMin, autoSnapshotHours, autoSnapshotKeep } = LIMITS

const ttlMinutesSchema = integerBetween(ttlMinutes.min, ttlMinutes.max)
const deleteAfterMinutesSchema = integerBetween(deleteAfterMinutes.min, deleteAfterMinutes.max)
const autoPauseMinSchema = integerBetween(autoPauseMin.min, autoPauseMin.max)
export const envSchema = z.record(
  z.string().regex(ENV_NAME_PATTERN, ENV_NAME_RULE),
  z.string().refine(noNul, NO_NUL_RULE),
)

/** The body of POST /boxes. CREATE_BOX_ERROR_CODES has the error code of each field. */
export const createBoxRequestSchema = z
  .strictObject({
    name: z
      .string()
      .regex(BOX_NAME_PATTERN, BOX_NAME_RULE)
      .optional()
      .meta({ description: 'default: a fruit name' }),
    tier: tierSchema.optional().meta({
      description:
        'default: lite, or a smaller memberMaxTier; with billing, micro on free credit alone, and a smaller one when the balance is not enough for 24 hours of all boxes',
    }),
    region: regionSchema.optional(),
    image: imageReferenceSchema.optional().meta({
      description:
        'the root file system of the box, such as debian:12; needs a region with images (GET /regions). The box keeps it for life. Default: that of the environment, or the default image of the region. Without a region, the box gets the default region, or the first one with images. Not together with fromSnapshotId or fromTemplate',
    }),
    ttlMinutes: ttlMinutesSchema
      .optional()
      .meta({ description: 'minutes from the request until the box is suspended' }),
    deleteAfterMinutes: deleteAfterMinutesSchema.nullish().meta({
      description:
        'minutes from the request until the coordinator deletes the box with its files; default and null: never. A fork and a box from a snapshot do not inherit it',
    }),
    autoPauseMin: autoPauseMinSchema.nullish().meta({
      description:
        'idle minutes until the box is suspended; null: never. Default: the policy autoPauseFloorMin for members, else never; on free credit alone 120, which null and any other value replace',
    }),
    environment: z.string().nullish().meta({
      description:
        'id or name of an environment, for its latest version; null: none. Default: the default environment of the workspace; of a box from a snapshot, the version that the snapshot has',
    }),
    env: envSchema.optional().meta({ description: 'environment variables of every command on the box' }),
    labels: labelsSchema.optional().meta({
      description: `Default: none; of a box from a snapshot, those that its box had. ${LABELS_RULE}`,
    }),
    restricted: z.boolean().optional().meta({
      description:
        'safe for third parties: the box gets no secrets, no secret files, no cloud tokens and no links that need no membership, and stays so. The boxes of contractors, and of restricted environments, always are: false is refused for a contractor',
    }),
    fromSnapshotId: z.string().optional().meta({
      description:
        'the snapshot whose files the box gets. Region and image, and by default tier and environment variables, are those of the snapshot; restricted is inherited',
    }),
    fromTemplate: z
      .string()
      .optional()
      .meta({ description: 'the name of a template; as fromSnapshotId, which must then be omitted' }),
  })
  .meta({ id: 'CreateBox' })
export type CreateBoxRequest = z.infer<typeof createBoxRequestSchema>

/** Error codes by field of createBoxRequestSchema. Fields that are not listed: bad_request. */
export const CREATE_BOX_ERROR_CODES = {
  name: 'invalid_name',
  tier: 'invalid_tier',
  region: 'invalid_region',
  image: 'invalid_image',
  ttlMinutes: 'invalid_pause_at',
  autoPauseMin: 'invalid_auto_pause',
  env: 'invalid_env',
  labels: 'invalid_labels',
  fromTemplate: 'invalid_template',
} as const

/** The body of PATCH /boxes/{id}. The service checks which fields may be given together. */
export const patchBoxRequestSchema = z
  .strictObject({
    name: z.string().regex(BOX_NAME_PATTERN, BOX_NAME_RULE).optional().meta({
      description:
        'the new name; the old one is free immediately. A running box keeps its hostname until its next start; a container of Docker or Podman keeps it then too.',
    }),
    autoPauseMin: autoPauseMinSchema.nullish().meta({
      description: 'idle minutes until the box is suspended; null: never, also on free credit',
    }),
    ttlMinutes: ttlMinutesSchema
      .nullish()
      .meta({ description: 'minutes from the request until the box is suspended; null: never' }),
    deleteAfterMinutes: deleteAfterMinutesSchema.nullish().meta({
      description:
        'minutes from the request until the coordinator deletes the box with its files, in whatever state, also an enrolled machine; null: never',
    }),
    pauseAt: requestTimestampSchema.nullish().meta({
      description:
        'when the box is suspended, in RFC 3339 or epoch seconds: in the future, at most 30 days from the request; null: never. Not together with ttlMinutes.',
    }),
    autoSnapshotHours: integerBetween(autoSnapshotHours.min, autoSnapshotHours.max)
      .nullish()
      .meta({ description: 'hours between automatic snapshots; null: none' }),
    autoSnapshotKeep: integerBetween(autoSnapshotKeep.min, autoSnapshotKeep.max)
      .optional()
      .meta({ description: 'automatic snapshots that are kept; older ones are deleted' }),
    labels: labelChangesSchema.optional(),
    quietHoursExempt: z.boolean().optional().meta({
      description:
        'whether the box stays awake when the quiet hours of the workspace start. May only be set by an owner of the workspace',
    }),
    env: envSchema.optional().meta({
      description:
        'replaces all environment variables of the box, from the next command on. Not together with other fields.',
    }),
  })
  .meta({ id: 'PatchBox' })
export type PatchBoxRequest = z.infer<typeof patchBoxRequestSchema>

/** Error codes by field of patchBoxRequestSchema. Fields that are not listed: bad_request. */
export const PATCH_BOX_ERROR_CODES = {
  name: 'invalid_name',
  autoPauseMin: 'invalid_auto_pause',
  ttlMinutes: 'invalid_pause_at',
  pauseAt: 'invalid_pause_at',
  autoSnapshotHours: 'invalid_auto_snapshot',
  autoSnapshotKeep: 'invalid_auto_snapshot',
  labels: 'invalid_labels',
  env: 'invalid_env',
} as const

/** Not in the spec. */
export const boxFilterSchema = z
  .string()
  .refine(noNul, NO_NUL_RULE)
  .optional()
  .meta({
    description: `only the live box with this name, and the boxes with this id or whose id starts with it. The start of an id has at least ${MIN_ID_PREFIX_LENGTH} characters`,
  })

export const listBoxesQuerySchema = z
  .object({
    live: queryFlag().optional().meta({ description: '1: omit terminated boxes' }),
    box: boxFilterSchema,
    // Not in the spec.
    deleted: queryFlag().optional().meta({
      description: '1, with box and without live: only deleted boxes; of several with the name, the newest',
    }),
    label: labelFilterSchema,
    limit: queryIntegerBetween(LIMITS.boxPage.min, LIMITS.boxPage.max)
      .optional()
      .meta({ description: `default: all boxes; with before: ${LIMITS.boxPage.max}` }),
    before: cursorSchema,
  })
  .refine(({ deleted, box, live }) => !deleted || (box !== undefined && !live), {
    path: ['deleted'],
    error: 'must be used together with box, and without live',
  })
/** Fields that are not listed: bad_request. */
export const LIST_BOXES_ERROR_CODES = { label: 'invalid_labels', before: 'invalid_cursor' } as const
export type ListBoxesQuery = z.infer<typeof listBoxesQuerySchema>
