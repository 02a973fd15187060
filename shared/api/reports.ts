// What the agent tells without being asked: NDJSON on one long answer (GET /reports), acknowledged by sequence.
import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { vitals } from './boxes.ts'
import { COMMAND_ENDS, COMMAND_ID, COMMAND_STREAMS } from './commands.ts'

/** Sent now or never: only the latest is worth anything, so it has no sequence and is not kept. */
export const heartbeat = z.object({ type: z.literal('heartbeat'), at: z.int(), vitals })

/** Each start of the agent's process: tells a reboot of the box from a crash of the agent. */
export const agentStarted = z.object({
  type: z.literal('agent.started'),
  at: z.int().meta({ description: 'milliseconds since the epoch, by the clock of the box' }),
  instanceId: z.string().max(64),
  bootId: z.string().max(64),
  agentVersion: z.string().max(64),
})

const commandId = z.string().regex(COMMAND_ID)
/** Milliseconds since the epoch, by the clock of the box, within what RFC 3339 can say. */
const instant = z.int().min(0).max(253_402_300_799_999)
const bytes = z.int().min(0)

/** The bytes of one command.output. */
export const OUTPUT_CHUNK_BYTES = 128 * 1024
const base64 = (max: number) => z.string().max(Math.ceil(max / 3) * 4)

/** A recorded command runs. Told again after the box lost its spool: it counts once. */
export const commandStarted = z.object({
  type: z.literal('command.started'),
  commandId,
  receipt: z.string().max(2048).meta({ description: 'as it came with the request; says everything else' }),
  command: z
    .string()
    .max(LIMITS.commandChars)
    .nullable()
    .meta({ description: 'null when it is not to be kept' }),
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
    .meta({ description: 'null when it could not be started' }),
  startedAt: instant,
})

/**
 * Bytes of one stream from `offset` on. What comes again is skipped; what comes after a gap replaces what was before.
 */
export const commandOutputReport = z.object({
  type: z.literal('command.output'),
  commandId,
  stream: z.enum(COMMAND_STREAMS),
  offset: bytes,
  data: base64(OUTPUT_CHUNK_BYTES),
})

/** The last word on a command, after all of its output; a short one's may ride along. */
export const commandFinished = z.object({
  type: z.literal('command.finished'),
  commandId,
  status: z.enum(COMMAND_ENDS),
  exitCode: z.int().min(0).max(255).nullable(),
  signal: z
    .string()
    .regex(/^[A-Z0-9+-]{1,32}$/)
    .nullable(),
  finishedAt: instant.nullable(),
  stdoutBytes: bytes.meta({ description: 'the length of the stream' }),
  stderrBytes: bytes,
  stdout: base64(OUTPUT_CHUNK_BYTES / 2)
    .optional()
    .meta({ description: 'the last bytes of the stream' }),
  stderr: base64(OUTPUT_CHUNK_BYTES / 2).optional(),
})

/** Reports that must arrive: kept on the box's disk until acknowledged. New kinds go into this union. */
export const durableReport = z.discriminatedUnion('type', [
  agentStarted,
  commandStarted,
  commandOutputReport,
  commandFinished,
])
export type DurableReport = z.infer<typeof durableReport>
export type CommandReport = Extract<DurableReport, { commandId: string }>

/**
 * A line of the stream. `epoch` names the spool: a box whose state was lost starts a new one at 1, and the
 * store applies (box, epoch, seq) once. A report of a kind that the coordinator does not know (the box is newer)
 * is skipped: it is parsed by `durableReport` on its own.
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

/** POST /reports/ack: every report up to and including seq is committed. */
export const reportAck = z.object({ epoch: z.string(), seq: z.int().min(0) })
export type ReportAck = z.infer<typeof reportAck>
