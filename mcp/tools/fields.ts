// Fields of several tools.
import { createHash } from 'node:crypto'
import { z } from 'zod'

export const boxField = z.string().min(1).describe('Name or id of the box')
export const requestIdField = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .describe('Any text of yours. A repeated call with the same one starts nothing new and finds the first')
export const waitSecondsField = z.number().min(1).max(45).optional().describe('Default: 45')
export const processIdField = z.string().min(1).describe('From run_command')

const offset = z.number().int().min(0)
export const offsetsField = z.strictObject({ stdout: offset, stderr: offset })

/** Of an answer with text of a box. */
export const noteField = z.string()

/** The Idempotency-Key of a requestId, which may have any characters. */
export const toIdempotencyKey = (requestId: string | undefined): { idempotencyKey?: string } =>
  requestId === undefined
    ? {}
    : { idempotencyKey: `mcp-${createHash('sha256').update(requestId).digest('hex')}` }

type Defined<Fields> = { [Name in keyof Fields]: Exclude<Fields[Name], undefined> }

/** zod types an optional field as undefined or absent; the client expects it to be absent. */
export const omitUndefined = <Fields extends object>(fields: Fields): Defined<Fields> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<Fields>
