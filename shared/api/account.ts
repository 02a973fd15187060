// Schema of the response to GET /me (spec §2.3): the user, the API key and the workspace.
import { z } from 'zod'
import { boxSchema } from './boxes.ts'
import { microDollarsSchema, timestampSchema } from './common.ts'

/** The areas in which the access of a key can be limited (spec §5.8). */
export const ACCESS_AREAS = ['boxes', 'workspace'] as const
export const accessLevelsSchema = z.partialRecord(z.enum(ACCESS_AREAS), z.enum(['none', 'read', 'write']))
export type AccessLevels = z.infer<typeof accessLevelsSchema>

export const accountSchema = z
  .object({
    customer: z
      .object({
        id: z.string().meta({ description: 'the workspace id' }),
        email: z.string().nullable(),
        githubLogin: z.string().nullable().meta({ description: 'always null' }),
        status: z.string(),
        onboardingStep: z.string().nullable().meta({ description: 'always null' }),
        onboardingCompletedAt: timestampSchema.nullable().meta({ description: 'always null' }),
        createdAt: timestampSchema,
        name: z.string(),
      })
      .meta({ description: 'the account that owns the workspace' }),
    user: z
      .object({
        email: z.string().nullable(),
        name: z.string(),
        role: z.enum(['owner', 'member', 'contractor']),
      })
      .nullable(),
    workspace: z.object({
      id: z.string(),
      name: z.string(),
      zeroDataRetention: z.boolean().optional(),
      closingAt: timestampSchema.nullable().optional(),
      purgeAfter: timestampSchema.nullable().optional(),
    }),
    billing: z
      .object({
        balanceMicros: microDollarsSchema,
        burnMicrosPerHour: microDollarsSchema,
        runwayHours: z.number().nullable().meta({ description: 'null while nothing is charged' }),
        warnBelowHours: z.number(),
        planAmountUsd: z.number(),
        overage: z.boolean(),
        collecting: z.boolean(),
        paymentFailed: z.boolean(),
        paymentGraceUntil: timestampSchema.nullable(),
        trial: z.boolean(),
        billingUrl: z.string().nullable(),
      })
      .nullable(),
    boxes: z.array(boxSchema),
    edge: z.object({ url: z.string() }),
    key: z.object({
      id: z.string(),
      kind: z.enum(['machine', 'api']),
      expiresAt: timestampSchema.nullable(),
      boxIds: z
        .array(z.string())
        .nullable()
        .meta({ description: 'ids of the boxes that the key may access; null: all boxes' }),
    }),
    access: accessLevelsSchema
      .optional()
      .meta({ description: 'access level per area; present only for a limited key' }),
    box: boxSchema
      .nullable()
      .meta({ description: 'the oldest live box; use `boxes` instead', deprecated: true }),
  })
  .meta({ id: 'Account' })
export type Account = z.infer<typeof accountSchema>
