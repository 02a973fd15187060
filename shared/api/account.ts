// Schema of the response to GET /me (spec §2.3): the user, the API key and the workspace.
import * as z from 'zod'
import { ACCESS_LEVELS, HOLDS, ROLES } from '../field-values.ts'
import { boxFilterSchema, boxSchema } from './boxes.ts'
import { microDollarsSchema, timestampSchema } from './common.ts'

export type AccessArea = keyof typeof ACCESS_LEVELS
export type AccessLevel = (typeof ACCESS_LEVELS)[AccessArea][number]
export const accessLevelsSchema = z.strictObject({
  boxes: z.enum(ACCESS_LEVELS.boxes).exactOptional(),
  workspace: z.enum(ACCESS_LEVELS.workspace).exactOptional(),
  history: z.enum(ACCESS_LEVELS.history).exactOptional(),
})
export type AccessLevels = z.infer<typeof accessLevelsSchema>

export type Role = (typeof ROLES)[number]

/** The values of customer.status. */
export const CUSTOMER_STATUSES = {
  active: 'the workspace is in use',
  unverified: "the emailed code of the caller's new agent account is not confirmed",
  closing: 'the closing of the workspace was requested; everything is removed after workspace.purgeAfter',
} as const

export const accountQuerySchema = z.object({ box: boxFilterSchema })
export type AccountQuery = z.infer<typeof accountQuerySchema>

/** The finances of a workspace. */
export const accountBillingSchema = z.object({
  balanceMicros: microDollarsSchema,
  burnMicrosPerHour: microDollarsSchema,
  runwayHours: z.number().nullable().meta({ description: 'null while nothing is charged' }),
  warnBelowHours: z.number().meta({ description: '0: billing is off' }),
  planAmountUsd: z.number(),
  overage: z.boolean(),
  overdraftMicros: microDollarsSchema.meta({
    description:
      'what the workspace may owe while its boxes run: as much as its saved card has paid, up to a maximum of the operator. 0: no card is saved, or it has not paid for too long',
  }),
  collecting: z.boolean(),
  paymentFailed: z.boolean(),
  paymentGraceUntil: timestampSchema.nullable(),
  trial: z.boolean(),
  billingUrl: z.string().nullable(),
  hold: z.enum(HOLDS).nullable().meta({
    description: 'why an operator has paused the workspace (workspace_held); null: it is not paused',
  }),
})

export const accountSchema = z
  .object({
    customer: z
      .object({
        id: z.string().meta({ description: 'the workspace id' }),
        email: z.string().nullable(),
        githubLogin: z.string().nullable().meta({ description: 'always null' }),
        status: z.enum(['active', 'unverified', 'closing']).meta({
          description: Object.entries(CUSTOMER_STATUSES)
            .map(([status, meaning]) => `${status}: ${meaning}`)
            .join('. '),
        }),
        onboardingStep: z.string().nullable().meta({ description: 'always null' }),
        onboardingCompletedAt: timestampSchema.nullable().meta({ description: 'always null' }),
        createdAt: timestampSchema,
        name: z.string(),
      })
      .meta({ description: 'the account that owns the workspace' }),
    user: z
      .object({
        id: z.string().optional().meta({ description: 'as in actors of events and records' }),
        email: z.string().nullable(),
        name: z.string(),
        role: z.enum(ROLES),
      })
      .nullable(),
    workspace: z.object({
      id: z.string(),
      name: z.string(),
      zeroDataRetention: z.boolean().optional(),
      closingAt: timestampSchema.nullable().optional(),
      purgeAfter: timestampSchema.nullable().optional(),
    }),
    billing: accountBillingSchema.nullable(),
    boxes: z.array(boxSchema),
    edge: z.object({ url: z.string() }),
    key: z
      .object({
        id: z.string(),
        kind: z.enum(['machine', 'api']),
        expiresAt: timestampSchema.nullable(),
        boxIds: z
          .array(z.string())
          .nullable()
          .meta({ description: 'ids of the boxes that the key may access; null: all boxes' }),
      })
      .optional()
      .meta({ description: 'absent for a dashboard session' }),
    access: accessLevelsSchema
      .optional()
      .meta({ description: 'access level per area; present only for a limited key' }),
    box: boxSchema
      .nullable()
      .meta({ description: 'the oldest live box of `boxes`; use these instead', deprecated: true }),
  })
  .meta({ id: 'Account' })
export type Account = z.infer<typeof accountSchema>
