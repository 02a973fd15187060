// Schemas of the file routes (spec §4.15). The agent's responses have the same schemas: the edge forwards them.
import { z } from 'zod'

/** The agent checks the path itself and chooses the error code. */
export const pathQuery = z.object({
  path: z.string().meta({ description: 'absolute; or relative to the home directory, optionally with ~/' }),
})

/** An octal file mode such as 644, 0755 or 0o600. */
export const FILE_MODE = /^(0o?)?[0-7]{3,4}$/
export const fileMode = z.string().regex(FILE_MODE, 'must be an octal string such as 0644')
export const parseFileMode = (mode: string): number => Number.parseInt(mode.replace(/^0o/, ''), 8)

export const uploadQuery = pathQuery.extend({ mode: fileMode.optional() })

export const writeFileRequest = z
  .object({
    path: z.string(),
    content: z.string(),
    encoding: z.enum(['utf8', 'base64']).optional().meta({ description: 'default: utf8' }),
    mode: fileMode.optional(),
  })
  .meta({ id: 'WriteFile' })
export type WriteFileRequest = z.infer<typeof writeFileRequest>

export const fileRead = z
  .object({
    ok: z.literal(true),
    type: z.literal('file.read'),
    path: z.string().meta({ description: 'the real path, symbolic links resolved' }),
    encoding: z.enum(['utf8', 'base64']).meta({ description: 'base64 when the bytes are not valid UTF-8' }),
    size: z.int(),
    mode: z.string().meta({ description: 'octal, such as 0644' }),
    content: z.string(),
  })
  .meta({ id: 'FileRead' })
export type FileRead = z.infer<typeof fileRead>

export const fileWritten = z
  .object({ ok: z.literal(true), type: z.literal('file.written'), path: z.string(), size: z.int() })
  .meta({ id: 'FileWritten' })
export const fileUploaded = z
  .object({ ok: z.literal(true), type: z.literal('file.uploaded'), path: z.string(), size: z.int() })
  .meta({ id: 'FileUploaded' })
export type FileWritten = z.infer<typeof fileWritten>
export type FileUploaded = z.infer<typeof fileUploaded>

/** Headers of a download (spec §4.15). */
export const PATH_HEADER = 'x-service-path'
export const CONTENT_HEADER = 'x-service-content'
