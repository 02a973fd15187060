// Schemas of machines: the tokens that enroll a machine as a box, and the exchange of a token by the agent.
import * as z from 'zod'
import { LIMITS } from '../limits.ts'
import { REGIONS } from '../tiers.ts'
import { BOX_NAME_PATTERN, BOX_NAME_RULE, envSchema } from './boxes.ts'
import { regionSchema, reportedTextSchema, timestampSchema } from './common.ts'

/** The body of POST /machines. ENROLLMENT_ERROR_CODES has the error code of each field. */
export const createEnrollmentRequestSchema = z
  .strictObject({
    name: z.string().regex(BOX_NAME_PATTERN, BOX_NAME_RULE).optional().meta({
      description:
        'the name of the box. Default: the hostname of the machine if it is free, else a fruit name',
    }),
    region: z
      .enum(REGIONS)
      .optional()
      .meta({ description: 'a label. Default: the region of boxes that are created without one' }),
    restricted: z.boolean().optional().meta({
      description: 'safe for third parties: the box gets no secrets and no links that need no membership',
    }),
    env: envSchema.optional().meta({ description: 'environment variables of every command on the box' }),
  })
  .meta({ id: 'CreateEnrollment' })
export type CreateEnrollmentRequest = z.infer<typeof createEnrollmentRequestSchema>

/** Error codes by field of createEnrollmentRequestSchema. */
export const ENROLLMENT_ERROR_CODES = {
  name: 'invalid_name',
  region: 'invalid_region',
  env: 'invalid_env',
} as const

export const enrollmentSchema = z
  .object({
    id: z.string().meta({ description: 'enr_…. Not secret' }),
    name: z.string().nullable().meta({ description: 'null: the name is chosen when the token is used' }),
    region: regionSchema,
    restricted: z.boolean(),
    createdBy: z.string().meta({ description: 'user:<id> or key:<id>' }),
    createdAt: timestampSchema,
    expiresAt: timestampSchema,
  })
  .meta({ id: 'Enrollment', description: 'A token for enrolling one machine, without the token' })
export type Enrollment = z.infer<typeof enrollmentSchema>

export const createEnrollmentResponseSchema = z
  .object({
    enrollment: enrollmentSchema,
    token: z.string().meta({
      description: `bxe_…: works once, within ${LIMITS.enrollmentSeconds / 60} minutes; shown only here`,
    }),
    command: z.string().meta({ description: 'the line to run on the machine' }),
  })
  .meta({ id: 'CreateEnrollmentResponse' })
export type CreateEnrollmentResponse = z.infer<typeof createEnrollmentResponseSchema>

export const enrollmentListSchema = z.object({
  enrollments: z.array(enrollmentSchema).meta({ description: 'newest first' }),
})
export type EnrollmentList = z.infer<typeof enrollmentListSchema>

export const AGENT_PLATFORMS = ['linux-x64', 'linux-arm64'] as const

/** The body of POST /agent/enroll. */
export const enrollRequestSchema = z.object({
  token: z.string().min(1).max(200),
  /** SHA-256 (hex) of the token with which the agent will connect. The agent creates and stores that token first. */
  agentTokenHash: z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lowercase hex'),
  hostname: reportedTextSchema(255),
  platform: z.enum(AGENT_PLATFORMS),
  agentVersion: z.string().regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters'),
  cpus: z.number().positive().max(65_536),
  memoryBytes: z.int().positive(),
})
export type EnrollRequest = z.infer<typeof enrollRequestSchema>

export const enrollResponseSchema = z.object({ boxId: z.uuid(), name: z.string() })
export type EnrollResponse = z.infer<typeof enrollResponseSchema>
