// Schemas of the file routes (spec §4.15), of edge and agent: the edge forwards the responses of the agent.
import * as z from 'zod'
import { FILE_MTIME_PATTERN, FILE_TYPES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import {
  boundedArray,
  queryFlag,
  queryIntegerBetween,
  reportedIntegerSchema,
  timestampSchema,
} from './common.ts'
import { INSTANT_FORMAT, INSTANT_RULE, parseInstant } from './request-times.ts'

/** Accepts any string: the agent validates the path and chooses the error code. */
export const pathQuerySchema = z.object({
  path: z.string().meta({
    description: 'absolute; or relative to the home directory, optionally with ~/',
    param: { id: 'path' },
  }),
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

/** The response of the agent to a download that has no content: for HEAD, and for a file that the client has already. */
export const downloadHeadSchema = z.object({
  status: z.union([z.literal(200), z.literal(206), z.literal(304)]),
  headers: z.record(z.string(), z.string()),
})
export type DownloadHead = z.infer<typeof downloadHeadSchema>

/** The position after an entry of a directory: the bytes of its name in base64url. A name has at most 255 bytes. */
const fileCursorSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,340}$/, 'must be the nextCursor of the previous page')
  .meta({ description: 'nextCursor of the previous page' })

export const listFilesQuerySchema = pathQuerySchema.extend({
  limit: queryIntegerBetween(LIMITS.filePage.min, LIMITS.filePage.max)
    .optional()
    .meta({ description: `default: ${LIMITS.filePage.default}` }),
  cursor: fileCursorSchema.optional(),
})
export const removeFileQuerySchema = pathQuerySchema.extend({
  recursive: queryFlag()
    .optional()
    .meta({ description: '1: remove a directory with its content. Default: only an empty directory' }),
})
export const makeDirectoryRequestSchema = z
  .object({
    path: z.string(),
    parents: z.boolean().optional().meta({
      description:
        'true: create missing parent directories too, and accept a directory that exists. Default: false',
    }),
  })
  .meta({ id: 'MakeDirectory' })
export const moveFileRequestSchema = z
  .object({
    from: z.string(),
    to: z.string().meta({
      description: 'the new path of the entry itself, also when it is the path of an existing directory',
    }),
    overwrite: z.boolean().optional().meta({
      description:
        'true: replace an existing file, or an existing empty directory by a directory. Default: false',
    }),
  })
  .meta({ id: 'MoveFile' })

export type FileType = (typeof FILE_TYPES)[number]

const MAX_ID = 2 ** 32 - 1
const MAX_NAME = 255
const MAX_PATH = 4096

export const fileEntrySchema = z
  .object({
    name: z
      .string()
      .max(MAX_NAME)
      .meta({ description: 'may have control characters. Bytes that are not UTF-8 are replaced by U+FFFD' }),
    nameBase64: z
      .base64()
      .max(2 * MAX_NAME)
      .optional()
      .meta({ description: 'the bytes of the name, when they are not UTF-8' }),
    type: z.enum(FILE_TYPES),
    size: reportedIntegerSchema.meta({ description: 'in bytes' }),
    mode: z
      .string()
      .regex(/^[0-7]{4}$/)
      .meta({ description: 'octal, such as 0644' }),
    uid: z.int().min(0).max(MAX_ID),
    gid: z.int().min(0).max(MAX_ID),
    owner: z.string().max(32).meta({ description: 'the name of the user, or its number' }),
    group: z.string().max(32).meta({ description: 'the name of the group, or its number' }),
    mtime: timestampSchema
      .nullable()
      .meta({ description: 'the modification time; null when its year is not between 1970 and 9999' }),
    target: z
      .string()
      .max(MAX_PATH)
      .optional()
      .meta({ description: 'of a symbolic link: the path that it stores' }),
    targetType: z.enum(FILE_TYPES).nullable().optional().meta({
      description: 'of a symbolic link: the type of what it leads to; null when that cannot be found',
    }),
  })
  .meta({ id: 'FileEntry' })
export type FileEntry = z.infer<typeof fileEntrySchema>

export const fileListSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('file.list'),
    path: z.string().meta({ description: 'the real path of the directory' }),
    entries: boundedArray(fileEntrySchema, LIMITS.filePage.max).meta({
      description: 'in the order of the bytes of their names, without . and ..',
    }),
    nextCursor: fileCursorSchema.nullable().meta({ description: 'null: this is the last page' }),
  })
  .meta({ id: 'FileList' })
export type FileList = z.infer<typeof fileListSchema>

export const fileStatSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('file.stat'),
    path: z.string().meta({ description: 'the real path of the directory of the entry, and its name' }),
    entry: fileEntrySchema,
  })
  .meta({ id: 'FileStat' })
export type FileStat = z.infer<typeof fileStatSchema>

export const directoryCreatedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('directory.created'),
    path: z.string().meta({ description: 'the real path' }),
    created: z.boolean().meta({ description: 'false: the directory existed' }),
  })
  .meta({ id: 'DirectoryCreated' })
export type DirectoryCreated = z.infer<typeof directoryCreatedSchema>

export const fileMovedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('file.moved'),
    from: z.string().meta({ description: 'the real path before the move' }),
    path: z.string().meta({ description: 'the real path' }),
  })
  .meta({ id: 'FileMoved' })
export type FileMoved = z.infer<typeof fileMovedSchema>

export const fileRemovedSchema = z
  .object({ ok: z.literal(true), type: z.literal('file.removed'), path: z.string() })
  .meta({ id: 'FileRemoved' })
export type FileRemoved = z.infer<typeof fileRemovedSchema>
