// Schemas of the file routes (spec §4.15), of edge and agent: the edge forwards the responses of the agent.
import { z } from 'zod'
import { FILE_MTIME_PATTERN } from '../field-values.ts'
import { reportedIntegerSchema } from './common.ts'
import { INSTANT_FORMAT, INSTANT_RULE, parseInstant } from './request-times.ts'

/** Accepts any string: the agent validates the path and chooses the error code. */
export const pathQuerySchema = z.object({
  path: z.string().meta({ description: 'absolute; or relative to the home directory, optionally with ~/' }),
})

/** An octal file mode such as 644, 0755 or 0o600. */
export const FILE_MODE_PATTERN = /^(0o?)?[0-7]{3,4}$/
export const fileModeSchema = z.string().regex(FILE_MODE_PATTERN, 'must be an octal string such as 0644')
export const parseFileMode = (mode: string): number => Number.parseInt(mode.replace(/^0o/, ''), 8)

/** Parsed to seconds since the epoch as text, which keeps nanoseconds. */
export const fileMtimeSchema = z.string().transform((text, context) => {
  if (FILE_MTIME_PATTERN.test(text)) return text
  const ms = parseInstant(text)
  if (ms !== null && ms >= 0) return String(ms / 1000)
  context.addIssue(INSTANT_RULE)
  return z.NEVER
})

export const uploadQuerySchema = pathQuerySchema.extend({
  mode: fileModeSchema.optional(),
  mtime: fileMtimeSchema
    .optional()
    .meta({ description: `The modification time. ${INSTANT_FORMAT} Default: now.` }),
})

export const writeFileRequestSchema = z
  .object({
    path: z.string(),
    content: z.string(),
    encoding: z.enum(['utf8', 'base64']).optional().meta({ description: 'default: utf8' }),
    mode: fileModeSchema.optional(),
  })
  .meta({ id: 'WriteFile' })
export type WriteFileRequest = z.infer<typeof writeFileRequestSchema>

export const fileReadSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('file.read'),
    path: z.string().meta({ description: 'the real path, symbolic links resolved' }),
    encoding: z.enum(['utf8', 'base64']).meta({ description: 'base64 when the bytes are not valid UTF-8' }),
    size: reportedIntegerSchema,
    mode: z.string().meta({ description: 'octal, such as 0644' }),
    content: z.string(),
  })
  .meta({ id: 'FileRead' })
export type FileRead = z.infer<typeof fileReadSchema>

export const fileWrittenSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('file.written'),
    path: z.string(),
    size: reportedIntegerSchema,
  })
  .meta({ id: 'FileWritten' })
export const fileUploadedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('file.uploaded'),
    path: z.string(),
    size: reportedIntegerSchema,
  })
  .meta({ id: 'FileUploaded' })
export type FileWritten = z.infer<typeof fileWrittenSchema>
export type FileUploaded = z.infer<typeof fileUploadedSchema>
