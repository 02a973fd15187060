// Every number that a box can send has a bound in its schema, so that a sum of them is exact and can be stored.
import t from 'tap'
import { z } from 'zod'
import { execResultSchema } from '../../shared/api/exec.ts'
import { fileReadSchema, fileUploadedSchema, fileWrittenSchema } from '../../shared/api/files.ts'
import {
  execKilledSchema,
  execListSchema,
  execStartedSchema,
  execStatusSchema,
} from '../../shared/api/processes.ts'
import { durableReportSchema, reportLineSchema } from '../../shared/api/reports.ts'
import { MAX_REPORTED_INTEGER } from '../../shared/report-limits.ts'
import { frameHeaderSchema } from '../../shared/stream-frames.ts'

type JsonSchema = { type?: string; minimum?: number; maximum?: number }

/** The paths of all numbers that may be negative or larger than the bound. */
function findUnboundedNumbers(schema: unknown, path: string): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { type, minimum = -1, maximum = Number.POSITIVE_INFINITY } = schema as JsonSchema
  const isNumber = type === 'integer' || type === 'number'
  const own = isNumber && (minimum < 0 || maximum > MAX_REPORTED_INTEGER) ? [path] : []
  return [
    ...own,
    ...Object.entries(schema).flatMap(([key, value]) => findUnboundedNumbers(value, `${path}.${key}`)),
  ]
}

const schemas = {
  ...{ execResultSchema, execStartedSchema, execListSchema, execStatusSchema, execKilledSchema },
  ...{ fileReadSchema, fileWrittenSchema, fileUploadedSchema },
  ...{ reportLineSchema, durableReportSchema, frameHeaderSchema },
}

for (const [name, schema] of Object.entries(schemas))
  t.test(`${name} bounds every number`, async (t) => {
    t.same(findUnboundedNumbers(z.toJSONSchema(schema), name), [])
  })

t.test('the check finds a number without a bound', async (t) => {
  const schema = z.object({ list: z.array(z.object({ size: z.int().nullable() })) })
  t.same(findUnboundedNumbers(z.toJSONSchema(schema), 'x').length, 1)
})
