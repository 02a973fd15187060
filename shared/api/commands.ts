// The command history of a box (spec §2.6, §4.4), and what the box and the coordinator agree on about a record.
import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { timestamp } from './common.ts'

export const COMMAND_ID = /^p_[0-9a-f]{24}$/
export const COMMAND_STREAMS = ['stdout', 'stderr'] as const
export type CommandStream = (typeof COMMAND_STREAMS)[number]
export const COMMAND_MODES = ['sync', 'detached'] as const
export type CommandMode = (typeof COMMAND_MODES)[number]
export const COMMAND_SOURCES = ['cli', 'api'] as const
export const COMMAND_ENDS = ['exited', 'killed', 'timed_out', 'failed', 'lost'] as const
export type CommandEnd = (typeof COMMAND_ENDS)[number]
export const COMMAND_STATUSES = ['running', ...COMMAND_ENDS] as const
export type CommandStatus = (typeof COMMAND_STATUSES)[number]

export const commandActor = z.object({
  kind: z.enum(['user', 'cli', 'ticket', 'mobile', 'system']),
  userId: z.string().nullable(),
  tokenId: z.string().nullable(),
})
export type CommandActor = z.infer<typeof commandActor>

export const command = z
  .object({
    id: z.string(),
    boxId: z.uuid(),
    mode: z.enum(COMMAND_MODES),
    source: z.enum(COMMAND_SOURCES),
    command: z
      .string()
      .nullable()
      .meta({ description: `at most its first ${LIMITS.commandChars} characters` }),
    commandTruncated: z.boolean(),
    cwd: z.string().nullable().meta({ description: 'the one sent, or ~' }),
    status: z.enum(COMMAND_STATUSES),
    exitCode: z.int().nullable(),
    signal: z.string().nullable().meta({ description: 'without SIG, such as TERM' }),
    pid: z.int().nullable(),
    startedAt: timestamp,
    finishedAt: timestamp.nullable(),
    actor: commandActor,
    stdoutBytes: z.int().meta({ description: 'the length of the stream, kept or not' }),
    stderrBytes: z.int(),
    stdoutTruncated: z.boolean().meta({ description: 'not all of it is kept' }),
    stderrTruncated: z.boolean(),
    outputKept: z.boolean().meta({ description: 'false under zero data retention' }),
  })
  .meta({ id: 'Command' })
export type Command = z.infer<typeof command>

export const commandAnswer = z.object({ command })
export const commandList = z.object({
  commands: z.array(command),
  nextBefore: z.string().nullable().meta({ description: 'for `before`; null on the last page' }),
})
export type CommandList = z.infer<typeof commandList>
export const commandsDeleted = z.object({ deleted: z.int() })

const page = LIMITS.commandPage
export const commandListQuery = z.object({
  limit: z.coerce
    .number()
    .int()
    .min(page.min)
    .max(page.max)
    .optional()
    .meta({ description: `default ${page.default}` }),
  before: z.string().min(1).max(200).optional().meta({ description: 'nextBefore of the page before' }),
  mode: z.enum(COMMAND_MODES).optional(),
  status: z.enum(COMMAND_STATUSES).optional(),
})
export type CommandListQuery = z.infer<typeof commandListQuery>

export const commandOutputQuery = z.object({
  stream: z.enum(COMMAND_STREAMS).optional().meta({ description: 'default stdout' }),
  offset: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(LIMITS.commandOutputBytes)
    .optional()
    .meta({ description: `bytes; default ${LIMITS.commandOutputBytes}` }),
  encoding: z.enum(['utf8', 'base64']).optional().meta({ description: 'default utf8' }),
})
export type CommandOutputQuery = z.infer<typeof commandOutputQuery>

export const commandOutput = z
  .object({
    stream: z.enum(COMMAND_STREAMS),
    encoding: z.enum(['utf8', 'base64']),
    offset: z.int().meta({ description: 'of the first byte of data: the requested one plus skipped' }),
    nextOffset: z.int(),
    size: z.int().meta({ description: 'the length of the stream so far' }),
    skipped: z.int().meta({ description: 'bytes from the requested offset on that are not kept' }),
    data: z.string().meta({
      description:
        'utf8 ends between characters: it may be up to 3 bytes over the limit to hold the last one whole',
    }),
    status: z.enum(COMMAND_STATUSES),
    done: z.boolean().meta({ description: 'the command has ended and every byte was read' }),
  })
  .meta({ id: 'CommandOutput' })
export type CommandOutput = z.infer<typeof commandOutput>

/** The part of a command's text that is kept. Never half a surrogate pair. */
export function keptText(text: string): { command: string; commandTruncated: boolean } {
  if (text.length <= LIMITS.commandChars) return { command: text, commandTruncated: false }
  const last = text.charCodeAt(LIMITS.commandChars - 1)
  const cut = last >= 0xd800 && last <= 0xdbff ? LIMITS.commandChars - 1 : LIMITS.commandChars
  return { command: text.slice(0, cut), commandTruncated: true }
}
