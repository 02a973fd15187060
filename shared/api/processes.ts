// Detached processes of a box and their output as a stream of events (spec §4.14). The agent answers in these shapes.
import { z } from 'zod'
import { ApiError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { timestamp } from './common.ts'
import { agentExecRequest } from './exec.ts'

/** What the coordinator asks of the agent: it chooses the id, so that a start whose answer was lost can be repeated. */
export const agentStartRequest = agentExecRequest.extend({
  detached: z.literal(true),
  processId: z.string().regex(/^p_[0-9a-f]{24}$/),
})
export type AgentStartRequest = z.infer<typeof agentStartRequest>

export const execStarted = z
  .object({
    ok: z.literal(true),
    type: z.literal('exec.started'),
    processId: z.string(),
    pid: z.int(),
    cwd: z.string().meta({ description: 'the one sent, or ~' }),
    startedAt: timestamp,
    logPath: z.string().meta({ description: 'of the file with its standard output, for GET /download' }),
    commandId: z
      .string()
      .optional()
      .meta({ description: 'equals processId; present when the run is recorded in the command history' }),
  })
  .meta({ id: 'ExecStarted' })
export type ExecStarted = z.infer<typeof execStarted>

const processFields = z.object({
  processId: z.string(),
  pid: z.int(),
  running: z.boolean(),
  lost: z.boolean().meta({
    description: 'true when it ended with the box or its runner: how it ended is not known',
  }),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  startedAt: timestamp,
  command: z.string(),
})

export const execList = z
  .object({ ok: z.literal(true), type: z.literal('exec.list'), processes: z.array(processFields) })
  .meta({
    id: 'ExecList',
    description:
      'newest first, at most 1000; of each command its first 2048 characters (all of it: one process)',
  })
export type ExecList = z.infer<typeof execList>
export type ProcessFields = z.infer<typeof processFields>

export const execStatus = processFields
  .extend({
    ok: z.literal(true),
    type: z.literal('exec.status'),
    finishedAt: timestamp.nullable(),
    cwd: z.string(),
    stdout: z.string().meta({ description: 'the last `tail` bytes as UTF-8' }),
    stderr: z.string(),
    stdoutTruncated: z.boolean().meta({ description: 'there was more before' }),
    stderrTruncated: z.boolean(),
  })
  .meta({ id: 'ExecStatus' })
export type ExecStatus = z.infer<typeof execStatus>

export const execKilled = z
  .object({
    ok: z.literal(true),
    type: z.literal('exec.killed'),
    processId: z.string(),
    wasRunning: z.boolean(),
    signal: z
      .enum(['TERM', 'KILL'])
      .nullable()
      .meta({ description: 'the strongest that was needed; null when it had ended before' }),
  })
  .meta({ id: 'ExecKilled' })
export type ExecKilled = z.infer<typeof execKilled>

const { detachedTailBytes } = LIMITS

export const statusQuery = z.object({
  tail: z.coerce.number().int().min(0).max(detachedTailBytes.max).optional(),
})

const offset = z
  .string()
  .regex(/^\d{1,15}$/, 'a number of bytes from 0 on')
  .transform(Number)
export const streamQuery = z.object({
  stdoutOffset: offset.optional(),
  stderrOffset: offset.optional(),
  streams: z
    .enum(['stdout', 'stderr', 'both', 'stdout,stderr', 'stderr,stdout'])
    .optional()
    .meta({ description: 'default both' }),
  encoding: z.enum(['utf8', 'base64']).optional().meta({ description: 'default utf8' }),
})
export type StreamQuery = z.infer<typeof streamQuery>

/** Header `Last-Event-ID`: <stdout>:<stderr>; it wins over the query's offsets. */
export const EVENT_ID = /^(\d{1,15}):(\d{1,15})$/

/** A place in each of the two streams of a process, in bytes. */
export type Offsets = { stdout: number; stderr: number }

/** The id of the event after which its reader stands there. */
export const eventId = ({ stdout, stderr }: Offsets): string => `${stdout}:${stderr}`

/** @throws ApiError invalid_request */
export function parseEventId(text: string): Offsets {
  const [, stdout, stderr] = EVENT_ID.exec(text) ?? []
  if (stdout === undefined || stderr === undefined)
    throw new ApiError('invalid_request', 'Last-Event-ID is <stdout>:<stderr>, two numbers of bytes.')
  return { stdout: Number(stdout), stderr: Number(stderr) }
}

/** The bytes of output in one event: 64 KiB as base64, without padding. */
export const STREAM_CHUNK_BYTES = 48 * 1024
/** The largest event: every byte of its output may need an escape of six. */
export const STREAM_EVENT_BYTES = 6 * STREAM_CHUNK_BYTES + 1024

/** The data of each event of GET /exec/{processId}/stream; each event's id is <stdoutOffset>:<stderrOffset> after it. */
export type StreamEvents = {
  attached: { processId: string; stdoutOffset: number; stderrOffset: number }
  /** `offset` may be past the one asked for when the log's head is no longer kept. Bytes, also under utf8. */
  stdout: { data: string; offset: number; nextOffset: number }
  stderr: { data: string; offset: number; nextOffset: number }
  heartbeat: Record<string, never>
  reconnect: { stdoutOffset: number; stderrOffset: number }
  exit: {
    status: 'exited' | 'killed' | 'lost'
    exitCode: number | null
    signal: string | null
    stdoutOffset: number
    stderrOffset: number
  }
  error: { code: string; message: string }
}

/** One of them as text/event-stream writes it. @param after where its reader stands then. @param data as JSON */
export const eventText = (name: keyof StreamEvents, after: Offsets, data: string): string =>
  `event: ${name}\nid: ${eventId(after)}\ndata: ${data}\n\n`

/** As the data of an event names a place. */
export const namedOffsets = ({ stdout, stderr }: Offsets): StreamEvents['reconnect'] => ({
  stdoutOffset: stdout,
  stderrOffset: stderr,
})
