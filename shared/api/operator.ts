// Schemas of the routes for operators: the owners of the coordinator's first workspace.
import * as z from 'zod'
import { HOLDS } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import {
  cursorSchema,
  displayNameSchema,
  microDollarsSchema,
  nextBeforeSchema,
  queryIntegerBetween,
  timestampSchema,
} from './common.ts'

/** Why an operator has paused a workspace. */
export type Hold = (typeof HOLDS)[number]

const holdSchema = z.enum(HOLDS)

export const operatorWorkspaceSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    ownerEmail: z.string().nullable().meta({ description: 'of the first owner who has joined' }),
    createdAt: timestampSchema,
    closingAt: timestampSchema.nullable(),
    balanceMicros: microDollarsSchema,
    burnMicrosPerHour: microDollarsSchema,
    trial: z.boolean().meta({ description: 'the workspace has had free credit only' }),
    hold: holdSchema.nullable().meta({ description: 'why the workspace is paused; null: it is not' }),
    flaggedAt: timestampSchema.nullable().meta({
      description: 'when a box on free credit had used its full CPU for hours; no effect by itself',
    }),
  })
  .meta({ id: 'OperatorWorkspace' })
export type OperatorWorkspace = z.infer<typeof operatorWorkspaceSchema>

export const operatorWorkspaceResponseSchema = z.object({ workspace: operatorWorkspaceSchema })

export const operatorWorkspaceListSchema = z.object({
  workspaces: z.array(operatorWorkspaceSchema),
  nextBefore: nextBeforeSchema,
})
export type OperatorWorkspaceList = z.infer<typeof operatorWorkspaceListSchema>

export const listWorkspacesQuerySchema = z.object({
  limit: queryIntegerBetween(LIMITS.workspacePage.min, LIMITS.workspacePage.max)
    .default(LIMITS.workspacePage.default)
    .meta({ description: `default: ${LIMITS.workspacePage.default}` }),
  before: cursorSchema,
})
/** Fields that are not listed: bad_request. */
export const LIST_WORKSPACES_ERROR_CODES = { before: 'invalid_cursor' } as const
export type ListWorkspacesQuery = z.infer<typeof listWorkspacesQuerySchema>

const MAX_USD = 100_000
const AMOUNT_RULE = `must be an amount in dollars between -${MAX_USD} and ${MAX_USD}, not 0 and with at most two decimals`

/** An amount in dollars with at most two decimals. */
const hasCents = (amount: number): boolean => Math.round(amount * 100) / 100 === amount

export const creditRequestSchema = z
  .strictObject({
    amountUsd: z
      .number(AMOUNT_RULE)
      .min(-MAX_USD, AMOUNT_RULE)
      .max(MAX_USD, AMOUNT_RULE)
      .refine((amount) => amount !== 0 && hasCents(amount), AMOUNT_RULE)
      .meta({ description: 'dollars, with at most two decimals; below 0: an adjustment that is no payment' }),
    free: z.boolean().optional().meta({
      description: 'true: a gift, which is no payment. A payment ends the limits of free credit',
    }),
    note: displayNameSchema(200).optional().meta({ description: 'shown to the owners of the workspace' }),
    cause: z
      .string()
      .regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters without spaces')
      .optional()
      .meta({
        description:
          'identifies the credit in the workspace, such as the number of an invoice. A repeated request with the same cause has no further effect. Default: a new one',
      }),
  })
  .meta({ id: 'Credit' })
export type CreditRequest = z.infer<typeof creditRequestSchema>

export const creditResponseSchema = z.object({
  cause: z.string(),
  created: z
    .boolean()
    .meta({ description: 'false: an earlier request with this cause has added the credit' }),
  workspace: operatorWorkspaceSchema,
})
export type CreditResponse = z.infer<typeof creditResponseSchema>

export const holdRequestSchema = z.strictObject({ reason: holdSchema }).meta({ id: 'HoldWorkspace' })

export const ledgerCheckQuerySchema = z.object({
  workspace: z.string().max(100).optional().meta({ description: 'the id of a workspace. Default: all' }),
})

export const ledgerDifferenceSchema = z
  .object({
    workspaceId: z.string(),
    what: z.string().meta({ description: 'balance, or total and the month, the box and the user' }),
    storedMicros: microDollarsSchema,
    computedMicros: microDollarsSchema.meta({ description: 'by the entries of the ledger' }),
  })
  .meta({ id: 'LedgerDifference' })
export type LedgerDifference = z.infer<typeof ledgerDifferenceSchema>

export const ledgerCheckResponseSchema = z.object({
  workspaces: z.int().meta({ description: 'the number of checked workspaces' }),
  differences: z.array(ledgerDifferenceSchema),
})
export type LedgerCheck = z.infer<typeof ledgerCheckResponseSchema>
