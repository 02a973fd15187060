// Schemas of boxes: their fields and states, and the requests that create and list them (spec §2.2, §4.3).
import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { REGIONS, TIER_NAMES } from '../tiers.ts'
import { ENV_NAME, ENV_NAME_RULE, integerBetween, timestamp } from './common.ts'
import { operation } from './operations.ts'

export const OBSERVED_STATES = [
  'requested',
  'provisioning',
  'bootstrapping',
  'running',
  'suspending',
  'suspended',
  'waking',
  'deep_sleep',
  'resizing',
  'migrating',
  'degraded',
  'provision_failed',
  'terminating',
  'terminated',
] as const
export const DESIRED_STATES = ['running', 'suspended', 'terminated'] as const
export type ObservedState = (typeof OBSERVED_STATES)[number]
export type DesiredState = (typeof DESIRED_STATES)[number]

export const BOX_NAME = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/
const BOX_NAME_RULE =
  'must be 1 to 32 lowercase letters, digits and hyphens, and start and end with a letter or digit'

export const ISOLATION_LEVELS = ['bubblewrap', 'namespaces', 'process'] as const
export const isolation = z
  .object({
    level: z.enum(ISOLATION_LEVELS).meta({
      description:
        'bubblewrap, namespaces: separate file system view, processes and hostname; process: separate home directory only',
    }),
    limits: z
      .array(z.enum(['cpu', 'memory', 'pids']))
      .meta({ description: 'the limits of the tier that are enforced, by cgroup' }),
  })
  .meta({ id: 'Isolation', description: 'How the box is isolated from its host and from other boxes' })
export type Isolation = z.infer<typeof isolation>

export const envVar = z.object({ name: z.string(), value: z.string() })

export const box = z
  .object({
    id: z.uuid(),
    hostname: z.string(),
    tier: z.enum(TIER_NAMES),
    region: z.enum(REGIONS),
    desiredRegion: z.enum(REGIONS).nullable(),
    desiredState: z.enum(DESIRED_STATES),
    observedState: z.enum(OBSERVED_STATES),
    autoPauseMin: z.int().nullable(),
    pauseAt: timestamp.nullable(),
    autoSnapshotHours: z.int().nullable(),
    autoSnapshotKeep: z.int(),
    environmentId: z.string().nullable(),
    environmentVersionNo: z.int().nullable(),
    envVars: z.array(envVar),
    restricted: z.boolean(),
    ownerUserId: z.string(),
    quietHoursExempt: z.boolean(),
    isolation: isolation.nullable().meta({ description: 'null until the box has a machine' }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Box' })
export type Box = z.infer<typeof box>

export const boxEvent = z
  .object({
    id: z.string(),
    fromState: z.enum(OBSERVED_STATES).nullable(),
    toState: z.enum(OBSERVED_STATES),
    reason: z.string(),
    actor: z.string().meta({ description: 'user:<id>, key:<id> or system' }),
    at: timestamp,
  })
  .meta({ id: 'BoxEvent' })
export type BoxEvent = z.infer<typeof boxEvent>

export const JOB_OPS = ['create', 'wake', 'suspend', 'recover', 'delete'] as const
export const job = z
  .object({
    op: z.enum(JOB_OPS),
    step: z.string(),
    attempt: z.int(),
    lastError: z.string().nullable(),
    nextRetryAt: timestamp.nullable(),
  })
  .meta({ id: 'Job', description: 'The running lifecycle change' })
export type Job = z.infer<typeof job>
export type JobOp = (typeof JOB_OPS)[number]

export const vitals = z
  .object({
    cpu_pct: z.number().min(0).max(100),
    mem_pct: z.number().min(0).max(100),
    disk_pct: z.number().min(0).max(100),
    idle_for_sec: z.int().min(0),
    listeners_count: z.int().min(0).max(1_000_000),
    agent_version: z.string().max(64),
  })
  .meta({
    id: 'Vitals',
    description: 'From the last heartbeat. Percentages, 0 to 100, are relative to the limits of the box.',
  })
export type Vitals = z.infer<typeof vitals>

export const boxDetail = z
  .object({
    box,
    state: z
      .object({
        desired: z.enum(DESIRED_STATES),
        observed: z.enum(OBSERVED_STATES),
        connected: z.boolean().meta({ description: 'whether the agent is connected' }),
        since: timestamp.meta({ description: 'when the observed state was entered' }),
        lastHeartbeatAt: timestamp.nullable(),
      })
      .meta({ description: 'The state summary' }),
    vitals: vitals.nullable(),
    events: z.array(boxEvent).max(LIMITS.boxEvents).meta({ description: 'newest first' }),
    job: job.nullable(),
    pausesSurvived: z.int(),
    environment: z
      .object({ id: z.string(), name: z.string(), versionNo: z.int(), latestVersionNo: z.int() })
      .nullable(),
    envVars: z.array(envVar),
    restricted: z.boolean(),
  })
  .meta({ id: 'BoxDetail' })
export type BoxDetail = z.infer<typeof boxDetail>

export const boxResponse = z.object({ box })
export const boxList = z.object({ boxes: z.array(box) })
export const boxDeleted = z.object({ box, operation })

const { ttlMinutes, autoPauseMin } = LIMITS

/** POST /boxes. Error codes of the fields: CREATE_BOX_CODES. */
export const createBox = z
  .object({
    name: z.string().regex(BOX_NAME, BOX_NAME_RULE).optional().meta({ description: 'default: a fruit name' }),
    tier: z.enum(TIER_NAMES).optional(),
    region: z.enum(REGIONS).optional(),
    ttlMinutes: integerBetween(ttlMinutes.min, ttlMinutes.max)
      .optional()
      .meta({ description: 'pause deadline, in minutes from now; stored, not enforced yet' }),
    autoPauseMin: integerBetween(autoPauseMin.min, autoPauseMin.max)
      .nullish()
      .meta({ description: 'idle minutes until the box pauses; stored, not enforced yet' }),
    environment: z.string().nullish(),
    env: z
      .record(
        z.string().regex(ENV_NAME, ENV_NAME_RULE),
        z.string().refine((value) => !value.includes('\0'), 'must not contain a NUL byte'),
      )
      .optional()
      .meta({ description: 'environment variables of every command on the box' }),
    restricted: z.boolean().optional().meta({ description: 'stored, not enforced yet' }),
    fromSnapshotId: z.string().optional(),
    fromTemplate: z.string().optional(),
  })
  .meta({ id: 'CreateBox' })
export type CreateBox = z.infer<typeof createBox>

/** The error codes of createBox's fields. Fields that are not listed: bad_request. */
export const CREATE_BOX_CODES = {
  name: 'invalid_name',
  tier: 'invalid_tier',
  region: 'invalid_region',
  ttlMinutes: 'invalid_pause_at',
  autoPauseMin: 'invalid_auto_pause',
  env: 'invalid_env',
  fromTemplate: 'invalid_template',
} as const

export const listBoxesQuery = z.object({
  live: z.enum(['1', '0']).optional().meta({ description: '1: omit terminated boxes' }),
})
