// Schema of GET /me (spec §2.3): the caller, its key and its workspace.
import { z } from 'zod'
import { box } from './boxes.ts'
import { micros, timestamp } from './common.ts'

export const AREAS = ['boxes', 'workspace'] as const
export const accessLevels = z.partialRecord(z.enum(AREAS), z.enum(['none', 'read', 'write']))
export type AccessLevels = z.infer<typeof accessLevels>

export const account = z
  .object({
    customer: z
      .object({
        id: z.string().meta({ description: 'the workspace id' }),
        email: z.string().nullable(),
        githubLogin: z.string().nullable().meta({ description: 'always null' }),
        status: z.string(),
        onboardingStep: z.string().nullable().meta({ description: 'always null' }),
        onboardingCompletedAt: timestamp.nullable().meta({ description: 'always null' }),
        createdAt: timestamp,
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
      closingAt: timestamp.nullable().optional(),
      purgeAfter: timestamp.nullable().optional(),
    }),
    billing: z
      .object({
        balanceMicros: micros,
        burnMicrosPerHour: micros,
        runwayHours: z.number().nullable().meta({ description: 'null while nothing is charged' }),
        warnBelowHours: z.number(),
        planAmountUsd: z.number(),
        overage: z.boolean(),
        collecting: z.boolean(),
        paymentFailed: z.boolean(),
        paymentGraceUntil: timestamp.nullable(),
        trial: z.boolean(),
        billingUrl: z.string().nullable(),
      })
      .nullable(),
    boxes: z.array(box),
    edge: z.object({ url: z.string() }),
    key: z.object({
      id: z.string(),
      kind: z.enum(['machine', 'api']),
      expiresAt: timestamp.nullable(),
      boxIds: z
        .array(z.string())
        .nullable()
        .meta({ description: 'the boxes that the key covers; null: all' }),
    }),
    access: accessLevels.optional().meta({ description: 'only present for a limited key' }),
    box: box.nullable().meta({ description: 'the oldest live box; use `boxes` instead', deprecated: true }),
  })
  .meta({ id: 'Account' })
export type Account = z.infer<typeof account>
