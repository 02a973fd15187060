// Schemas of the usage of a workspace in a month: what its boxes have cost, by box, member or day.
import * as z from 'zod'
import { MONTH_PATTERN, USAGE_GROUPS } from '../field-values.ts'
import { microDollarsSchema } from './common.ts'

export type UsageGroup = (typeof USAGE_GROUPS)[number]

/** Of each day at most this number of boxes or members, those with the highest amounts of the month. */
export const MAX_DAY_PARTS = 7

const MONTH_RULE = 'must be a month, such as 2030-01'
const monthSchema = z
  .string()
  .regex(MONTH_PATTERN, MONTH_RULE)
  .meta({ description: 'in UTC, such as 2030-01', format: 'year-month' })

export const usageQuerySchema = z.object({
  by: z.enum(USAGE_GROUPS).optional().meta({ description: 'what each row is about; default: box' }),
  month: monthSchema.optional().meta({ description: 'in UTC, such as 2030-01; default: the current month' }),
  split: z.enum(['box', 'member']).optional().meta({ description: 'with by=day: adds `parts`' }),
})
export type UsageQuery = z.infer<typeof usageQuerySchema>

const amounts = {
  micros: microDollarsSchema,
  computeSeconds: z.int().min(0).meta({ description: 'seconds in which boxes were running' }),
}

export const boxUsageSchema = z
  .object({
    boxId: z.string(),
    hostname: z.string().nullable().meta({ description: 'null: the box was deleted long ago' }),
    ...amounts,
  })
  .meta({ id: 'BoxUsage', description: 'What a box and its snapshots have cost.' })
export type BoxUsage = z.infer<typeof boxUsageSchema>

export const memberUsageSchema = z
  .object({
    userId: z.string(),
    name: z.string().nullable().meta({ description: 'also of a user who has left the workspace' }),
    email: z.string().nullable(),
    ...amounts,
  })
  .meta({ id: 'MemberUsage', description: 'What boxes have cost while the member owned them.' })
export type MemberUsage = z.infer<typeof memberUsageSchema>

export const dayUsageSchema = z
  .object({
    day: z.string().meta({ description: 'in UTC, such as 2030-01-31' }),
    ...amounts,
    parts: z
      .array(z.object({ id: z.string(), micros: microDollarsSchema }))
      .optional()
      .meta({
        description: `of the ${MAX_DAY_PARTS} highest of the month`,
      }),
  })
  .meta({ id: 'DayUsage', description: 'What the boxes have cost on a day.' })
export type DayUsage = z.infer<typeof dayUsageSchema>

const usageOf = <Group extends UsageGroup, Row extends z.ZodType>(by: Group, row: Row, order: string) =>
  z.object({
    by: z.literal(by),
    month: monthSchema,
    totalMicros: microDollarsSchema,
    rows: z.array(row).meta({ description: order }),
  })

const BY_AMOUNT = 'the highest amount first'
export const usageSchema = z.discriminatedUnion('by', [
  usageOf('box', boxUsageSchema, BY_AMOUNT),
  usageOf('member', memberUsageSchema, BY_AMOUNT),
  usageOf('day', dayUsageSchema, 'only days with usage, in their order'),
])
export type Usage = z.infer<typeof usageSchema>
