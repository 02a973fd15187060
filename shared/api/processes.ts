// Schemas of detached processes and their output stream (spec §4.14), used by agent, coordinator and CLI.
import * as z from 'zod'
import { LIMITS } from '../limits.ts'
import {
  boundedArray,
  exitCodeSchema,
  pidSchema,
  queryFlag,
  queryIntegerBetween,
  timestampSchema,
} from './common.ts'
import { agentExecRequestSchema } from './exec.ts'
import { requestTimestampSchema } from './request-times.ts'

/** Start request to the agent. The coordinator chooses the id, so that a start whose response was lost can be repeated. */
export const agentStartRequestSchema = agentExecRequestSchema.extend({
  detached: z.literal(true),
  processId: z.string().regex(/^p_[0-9a-f]{24}$/),
})
export type AgentStartRequest = z.infer<typeof agentStartRequestSchema>

export const execStartedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('exec.started'),
    processId: z.string(),
    pid: pidSchema,
    cwd: z.string().meta({ description: 'as given in the request; ~ when the request has none' }),
    startedAt: timestampSchema,
    logPath: z.string().meta({ description: 'path of the file with the standard output, for GET /download' }),
    commandId: z
      .string()
      .optional()
      .meta({ description: 'equals processId; present when the command is recorded in the history' }),
  })
  .meta({ id: 'ExecStarted' })
export type ExecStarted = z.infer<typeof execStartedSchema>

/** The default is for agents of boxes that were started by an earlier version. */
export const timedOutSchema = z
  .boolean()
  .default(false)
  .meta({ description: 'true only when the time limit terminated the command' })

const processFieldsSchema = z.object({
  processId: z.string(),
  pid: pidSchema,
  running: z.boolean(),
  lost: z.boolean().meta({
    description: 'true when the box or the runner stopped: the exit status is unknown',
  }),
  exitCode: exitCodeSchema.nullable(),
  signal: z.string().nullable(),
  timedOut: timedOutSchema,
  attached: z.boolean().default(false).meta({ description: 'whether the command was started with attached' }),
  startedAt: timestampSchema,
  command: z.string(),
})

export const execListSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('exec.list'),
    processes: boundedArray(processFieldsSchema, LIMITS.listedProcesses),
  })
  .meta({
    id: 'ExecList',
    description:
      'Newest first. Each command is truncated to 2048 characters; GET /exec/{processId} returns the whole command.',
  })
export type ExecList = z.infer<typeof execListSchema>
export type ProcessFields = z.infer<typeof processFieldsSchema>

export const execStatusSchema = processFieldsSchema
  .extend({
    ok: z.literal(true),
    type: z.literal('exec.status'),
    finishedAt: timestampSchema.nullable(),
    cwd: z.string(),
    stdout: z.string().meta({ description: 'the last `tail` bytes, as UTF-8' }),
    stderr: z.string(),
    stdoutTruncated: z.boolean().meta({ description: 'whether the stream has output before the tail' }),
    stderrTruncated: z.boolean(),
  })
  .meta({ id: 'ExecStatus' })
export type ExecStatus = z.infer<typeof execStatusSchema>

export const execKilledSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('exec.killed'),
    processId: z.string(),
    wasRunning: z.boolean(),
    signal: z.enum(['TERM', 'KILL']).nullable().meta({
      description: 'the strongest signal that was needed; null when the process had already exited',
    }),
  })
  .meta({ id: 'ExecKilled' })
export type ExecKilled = z.infer<typeof execKilledSchema>

export const execStatusQuerySchema = z.object({
  tail: queryIntegerBetween(0, LIMITS.detachedTailBytes.max)
    .optional()
    .meta({ description: `bytes of each stream; default ${LIMITS.detachedTailBytes.default}` }),
})

/** Stream offsets have at most 15 digits, so that they are exact as JavaScript numbers. */
export const MAX_STREAM_OFFSET = 10 ** 15 - 1

const offsetSchema = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a number of bytes')
  .transform(Number)
export const streamQuerySchema = z.object({
  stdoutOffset: offsetSchema.optional(),
  stderrOffset: offsetSchema.optional(),
  streams: z
    .enum(['stdout', 'stderr', 'both', 'stdout,stderr', 'stderr,stdout'])
    .optional()
    .meta({ description: 'default both' }),
  encoding: z.enum(['utf8', 'base64']).optional().meta({ description: 'default utf8' }),
  since: requestTimestampSchema.optional().meta({
    description:
      'start with the output that was written at this time or later, but not before the requested offsets; ignored for a stream whose times are unknown',
  }),
  timestamps: queryFlag().optional().meta({
    description: '1: `stdout` and `stderr` events have `at`, the time at which their output was written',
  }),
})
export type StreamQuery = z.infer<typeof streamQuerySchema>
export type StreamEncoding = NonNullable<StreamQuery['encoding']>

/** A reader's position in the two streams of a process, in bytes. */
export type Offsets = { stdout: number; stderr: number }

/** The most bytes of output in one event: 64 KiB as base64. */
export const STREAM_CHUNK_BYTES = 48 * 1024
/** The largest event: each byte of output may need a six-character JSON escape. */
export const STREAM_EVENT_BYTES = 6 * STREAM_CHUNK_BYTES + 1024

type PositionFields = { stdoutOffset: number; stderrOffset: number }
type OutputEventData = {
  data: string
  /**
   * With timestamps=1: when the output was written, RFC 3339 in UTC, exact to 100 ms; null when unknown. An event contains
   * output of one time only.
   */
  at?: string | null
  /**
   * Offset of the first byte of `data` in the stream; counts bytes even when `data` is UTF-8 text. Larger than requested
   * when the log's head was discarded.
   */
  offset: number
  nextOffset: number
}

/** The data of each event of GET /exec/{processId}/stream. */
export type StreamEvents = {
  /** `hasTimes`, with since or timestamps: whether the times of the requested streams are known. */
  attached: { processId: string; hasTimes?: boolean } & PositionFields
  stdout: OutputEventData
  stderr: OutputEventData
  heartbeat: Record<string, never>
  reconnect: PositionFields
  exit: {
    status: 'exited' | 'killed' | 'lost'
    exitCode: number | null
    signal: string | null
    timedOut: boolean
  } & PositionFields
  error: { code: string; message: string }
}
