// Schemas of the command history (spec §2.6, §4.4), and the constants of commands that agent and coordinator share.
import * as z from 'zod'
import { COMMAND_MODES, COMMAND_STATUSES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import {
  boxIdSchema,
  cursorSchema,
  nextBeforeSchema,
  queryIntegerBetween,
  queryOffset,
  timestampSchema,
} from './common.ts'
import { queryInstantSchema } from './request-times.ts'

export const COMMAND_STREAMS = ['stdout', 'stderr'] as const
export type CommandStream = (typeof COMMAND_STREAMS)[number]
export const COMMAND_SOURCES = ['cli', 'api'] as const

export const commandActorSchema = z.object({
  kind: z.enum(['user', 'cli', 'ticket', 'mobile', 'system']),
  userId: z.string().nullable(),
  tokenId: z.string().nullable(),
})
export type CommandActor = z.infer<typeof commandActorSchema>

export const commandSchema = z
  .object({
    id: z.string(),
    boxId: boxIdSchema,
    mode: z.enum(COMMAND_MODES),
    source: z.enum(COMMAND_SOURCES),
    command: z
      .string()
      .nullable()
      .meta({ description: `at most the first ${LIMITS.commandChars} characters` }),
    commandTruncated: z.boolean(),
    cwd: z.string().nullable().meta({ description: 'as given in the request; ~ when the request has none' }),
    status: z.enum(COMMAND_STATUSES),
    exitCode: z.int().nullable(),
    signal: z
      .string()
      .nullable()
      .meta({ description: 'name without SIG, such as TERM, or a real-time signal number' }),
    pid: z.int().nullable(),
    startedAt: timestampSchema,
    finishedAt: timestampSchema.nullable(),
    actor: commandActorSchema,
    stdoutBytes: z.int().meta({ description: 'length of the stream, including bytes that are not stored' }),
    stderrBytes: z.int(),
    stdoutTruncated: z.boolean().meta({ description: 'whether some bytes of the stream are not stored' }),
    stderrTruncated: z.boolean(),
    outputKept: z.boolean().meta({ description: 'false under zero data retention' }),
  })
  .meta({ id: 'Command' })
export type Command = z.infer<typeof commandSchema>

export const commandResponseSchema = z.object({ command: commandSchema })
export const commandListSchema = z.object({
  commands: z.array(commandSchema),
  nextBefore: nextBeforeSchema,
})
export type CommandList = z.infer<typeof commandListSchema>
export const deleteCommandsResponseSchema = z.object({ deleted: z.int() })

const pageLimit = LIMITS.commandPage
export const commandListQuerySchema = z.object({
  limit: queryIntegerBetween(pageLimit.min, pageLimit.max)
    .optional()
    .meta({ description: `default: ${pageLimit.default}` }),
  before: cursorSchema,
  mode: z.enum(COMMAND_MODES).optional(),
  status: z.enum(COMMAND_STATUSES).optional(),
  to: queryInstantSchema
    .optional()
    .meta({ description: 'only commands that were requested before this time' }),
})
/** Fields that are not listed: bad_request. */
export const COMMAND_LIST_ERROR_CODES = { before: 'invalid_cursor' } as const
export type CommandListQuery = z.infer<typeof commandListQuerySchema>

export const commandOutputQuerySchema = z.object({
  stream: z.enum(COMMAND_STREAMS).optional().meta({ description: 'default: stdout' }),
  offset: queryOffset().optional().meta({ description: 'in bytes; default: 0' }),
  limit: queryIntegerBetween(1, LIMITS.commandOutputBytes)
    .optional()
    .meta({ description: `in bytes; default: ${LIMITS.commandOutputBytes}` }),
  encoding: z.enum(['utf8', 'base64']).optional().meta({ description: 'default: utf8' }),
})
export type CommandOutputQuery = z.infer<typeof commandOutputQuerySchema>

export const commandOutputSchema = z
  .object({
    stream: z.enum(COMMAND_STREAMS),
    encoding: z.enum(['utf8', 'base64']),
    offset: z
      .int()
      .meta({ description: 'offset of the first byte of `data`: the requested offset plus `skipped`' }),
    nextOffset: z.int().meta({ description: 'value of `offset` for the next page' }),
    size: z.int().meta({ description: 'length of the stream so far' }),
    skipped: z.int().meta({ description: 'bytes after the requested offset that are not stored' }),
    data: z.string().meta({
      description:
        'utf8 pages end between characters, and may exceed `limit` by up to 3 bytes for a whole last character',
    }),
    status: z.enum(COMMAND_STATUSES),
    done: z
      .boolean()
      .meta({ description: 'whether the command has exited and this page reaches the end of the stream' }),
  })
  .meta({ id: 'CommandOutput' })
export type CommandOutput = z.infer<typeof commandOutputSchema>
