// Schemas of snapshots (spec §2.4, §4.8): fields, and the requests to create, restore, fork and name them.
import * as z from 'zod'
import { SNAPSHOT_KINDS, SNAPSHOT_STATUSES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { BOX_NAME_PATTERN, BOX_NAME_RULE, boxSchema } from './boxes.ts'
import { NO_NUL_RULE, noNul, queryFlag, regionSchema, tierSchema, timestampSchema } from './common.ts'
import { operationSchema } from './operations.ts'

export const SNAPSHOT_NAME_PATTERN = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/
export const SNAPSHOT_NAME_RULE =
  'must be 1 to 64 letters, digits, periods, underscores and hyphens, and start and end with a letter or digit'
const snapshotNameSchema = z.string().regex(SNAPSHOT_NAME_PATTERN, SNAPSHOT_NAME_RULE)
const descriptionSchema = z
  .string()
  .max(LIMITS.snapshotDescriptionChars, `must be at most ${LIMITS.snapshotDescriptionChars} characters`)
  .refine(noNul, NO_NUL_RULE)

export const snapshotSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    status: z.enum(SNAPSHOT_STATUSES),
    kind: z.enum(SNAPSHOT_KINDS).meta({
      description:
        'manual: POST /snapshots; template: has a templateName; fork: the copy that a fork makes; auto: by autoSnapshotHours; final: taken when the box was deleted',
    }),
    templateName: z.string().nullable(),
    expiresAt: timestampSchema.nullable().meta({
      description:
        'when the snapshot is deleted. auto: after autoSnapshotHours times (autoSnapshotKeep + 1), at least 7 days; the copy of a fork: after 24 hours, or earlier when the new box has its files. Otherwise null',
    }),
    boxId: z.string(),
    sourceBoxHostname: z.string(),
    tier: tierSchema,
    region: regionSchema,
    image: z.string().nullable().meta({ description: 'the image of the box; null: it had none' }),
    sizeGb: z.number().nullable().meta({
      description:
        'the disk space that the files need in a box, in units of 10^9 bytes; null until the snapshot is available',
    }),
    pausedMs: z.int().nullable().meta({
      description:
        'how long the processes of the box were paused, in milliseconds; null: the box was not running, or the snapshot is not available',
    }),
    error: z.string().nullable().meta({ description: 'why the snapshot failed' }),
    createdAt: timestampSchema,
  })
  .meta({ id: 'Snapshot' })
export type Snapshot = z.infer<typeof snapshotSchema>

export const snapshotResponseSchema = z.object({ snapshot: snapshotSchema })
export const snapshotListSchema = z.object({ snapshots: z.array(snapshotSchema) })
export const deleteSnapshotResponseSchema = z.object({ snapshot: snapshotSchema, operation: operationSchema })
export const templateResponseSchema = z.object({
  snapshot: snapshotSchema,
  previous: snapshotSchema.nullable().meta({ description: 'the snapshot that had the name before' }),
})
export const forkResponseSchema = z.object({ box: boxSchema, snapshot: snapshotSchema })

export const listSnapshotsQuerySchema = z.object({
  transient: queryFlag().optional().meta({ description: '1: include the copies that forks make' }),
})

export const createSnapshotRequestSchema = z
  .strictObject({ boxId: z.string(), name: snapshotNameSchema, description: descriptionSchema.nullish() })
  .meta({ id: 'CreateSnapshot' })
export type CreateSnapshotRequest = z.infer<typeof createSnapshotRequestSchema>

/** The body of POST /boxes/{id}/template. */
export const createTemplateRequestSchema = z
  .strictObject({ name: snapshotNameSchema, description: descriptionSchema.nullish() })
  .meta({ id: 'CreateTemplate' })
export type CreateTemplateRequest = z.infer<typeof createTemplateRequestSchema>

/** The body of POST /snapshots/{id}/template. */
export const nameTemplateRequestSchema = z
  .strictObject({ name: snapshotNameSchema })
  .meta({ id: 'NameTemplate' })

const boxNameSchema = z
  .string()
  .regex(BOX_NAME_PATTERN, BOX_NAME_RULE)
  .optional()
  .meta({ description: 'default: a fruit name' })

export const restoreRequestSchema = z
  .strictObject({
    name: boxNameSchema,
    tier: tierSchema.optional().meta({ description: 'default: the tier of the snapshot' }),
    environment: z.string().nullish().meta({
      description: 'id or name, for its latest version; null: none. Default: the version that the source had',
    }),
  })
  .meta({ id: 'RestoreSnapshot' })
export type RestoreRequest = z.infer<typeof restoreRequestSchema>

export const forkRequestSchema = restoreRequestSchema
  .extend({
    tier: tierSchema.optional().meta({ description: 'default: the tier of the box' }),
    keepSnapshot: z.boolean().optional().meta({
      description:
        'keep the snapshot that the fork makes; otherwise it is deleted when the new box has its files',
    }),
  })
  .meta({ id: 'ForkBox' })
export type ForkRequest = z.infer<typeof forkRequestSchema>

/** Error codes by field of the requests to fork and restore. */
export const RESTORE_ERROR_CODES = { name: 'invalid_name', tier: 'invalid_tier' } as const
/** Error codes by field of the requests with the name of a snapshot or template. */
export const SNAPSHOT_ERROR_CODES = { name: 'invalid_name' } as const
export const TEMPLATE_ERROR_CODES = { name: 'invalid_template' } as const
