// Schemas of the agent's reports: NDJSON on one long-lived response (GET /reports), acknowledged by sequence number.
import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { vitals } from './boxes.ts'
import { COMMAND_ID, COMMAND_STREAMS, FINAL_COMMAND_STATUSES } from './commands.ts'

/** Has no sequence number and is not stored: only the latest heartbeat matters. */
export const heartbeat = z.object({ type: z.literal('heartbeat'), at: z.int(), vitals })

/** Reported at each start of the agent's process. The boot id shows whether the box rebooted. */
export const agentStarted = z.object({
  type: z.literal('agent.started'),
  at: z.int().meta({ description: 'milliseconds since the epoch, by the clock of the box' }),
  instanceId: z.string().max(64),
  bootId: z.string().max(64),
  agentVersion: z.string().max(64),
})

const commandId = z.string().regex(COMMAND_ID)
/** Milliseconds since the epoch, by the clock of the box. The maximum is the end of year 9999, the last of RFC 3339. */
const instant = z.int().min(0).max(253_402_300_799_999)
const bytes = z.int().min(0)

/** Maximum bytes of one command.output report. */
export const OUTPUT_CHUNK_BYTES = 128 * 1024
const base64 = (max: number) => z.string().max(Math.ceil(max / 3) * 4)

/** A recorded command was started. May be reported again after the box lost its spool. */
export const commandStarted = z.object({
  type: z.literal('command.started'),
  commandId,
  claimsToken: z
    .string()
    .max(2048)
    .meta({ description: 'from the request, unchanged; identifies the box, the actor and the request' }),
  command: z
    .string()
    .max(LIMITS.commandChars)
    .nullable()
    .meta({ description: 'null: not stored (zero data retention)' }),
  commandTruncated: z.boolean(),
  cwd: z
    .string()
    .max(64 * 1024)
    .nullable(),
  pid: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .nullable()
    .meta({ description: 'null: the command could not be started' }),
  startedAt: instant,
})

/** Bytes of one stream from `offset` on. Repeated bytes are ignored; bytes after a gap replace the bytes before it. */
export const commandOutputReport = z.object({
  type: z.literal('command.output'),
  commandId,
  stream: z.enum(COMMAND_STREAMS),
  offset: bytes,
  data: base64(OUTPUT_CHUNK_BYTES),
})

/** The final report of a command. May contain the last bytes of its output. */
export const commandFinished = z.object({
  type: z.literal('command.finished'),
  commandId,
  status: z.enum(FINAL_COMMAND_STATUSES),
  exitCode: z.int().min(0).max(255).nullable(),
  signal: z
    .string()
    .regex(/^[A-Z0-9+-]{1,32}$/)
    .nullable(),
  finishedAt: instant.nullable(),
  stdoutBytes: bytes.meta({ description: 'length of the stream' }),
  stderrBytes: bytes,
  stdout: base64(OUTPUT_CHUNK_BYTES / 2)
    .optional()
    .meta({ description: 'the last bytes of the stream' }),
  stderr: base64(OUTPUT_CHUNK_BYTES / 2).optional(),
})

/** Reports that are stored on the box's disk until acknowledged. */
export const durableReport = z.discriminatedUnion('type', [
  agentStarted,
  commandStarted,
  commandOutputReport,
  commandFinished,
])
export type DurableReport = z.infer<typeof durableReport>
export type CommandReport = Extract<DurableReport, { commandId: string }>

/**
 * One line of the stream. `epoch` identifies the spool: an agent that lost its state starts a new one at sequence
 * number 1. The store applies each (box, epoch, seq) once. `report` is parsed separately with `durableReport`, because
 * a newer agent may send types that the coordinator does not know; those are skipped.
 */
export const reportLine = z.discriminatedUnion('type', [
  heartbeat,
  z.object({
    type: z.literal('report'),
    epoch: z.string().max(64),
    seq: z.int().min(1),
    report: z.looseObject({ type: z.string() }),
  }),
])
export type Heartbeat = z.infer<typeof heartbeat>
export type ReportLine = z.infer<typeof reportLine>

/** POST /reports/ack: every report up to and including `seq` is committed. */
export const reportAck = z.object({ epoch: z.string(), seq: z.int().min(0) })
export type ReportAck = z.infer<typeof reportAck>
