// Schemas of the agent's reports: NDJSON in the responses to POST /reports/next, or in one long response to GET /reports,
// acknowledged by sequence number.

import * as z from 'zod'
import { COMMAND_ID_PATTERN, FINAL_COMMAND_STATUSES } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { MAX_SURVIVING_COMMANDS, OUTPUT_CHUNK_BYTES } from '../report-limits.ts'
import { vitalsSchema } from './boxes.ts'
import { COMMAND_STREAMS } from './commands.ts'
import {
  boundedArray,
  epochMsSchema,
  exitCodeSchema,
  pidSchema,
  reportedIntegerSchema,
  reportedTextSchema,
} from './common.ts'
import { machineSchema } from './machine.ts'
import { metricsSampleSchema } from './metrics.ts'
import { listenersLineSchema, processSnapshotReportSchema } from './process-snapshots.ts'

/** A heartbeat has no sequence number and is not stored: only the latest heartbeat matters. */
export const heartbeatSchema = z.object({
  type: z.literal('heartbeat'),
  at: epochMsSchema,
  vitals: vitalsSchema,
})

/** Reported at each start of the agent's process. The boot id shows whether the box rebooted. */
export const agentStartedSchema = z.object({
  type: z.literal('agent.started'),
  at: epochMsSchema,
  instanceId: reportedTextSchema(64),
  bootId: reportedTextSchema(64),
  agentVersion: reportedTextSchema(64),
  survivingCommands: boundedArray(z.string().regex(COMMAND_ID_PATTERN), MAX_SURVIVING_COMMANDS)
    .optional()
    .meta({
      description: 'attached commands and terminal sessions, recorded as synchronous, that still run',
    }),
})

const commandIdSchema = z.string().regex(COMMAND_ID_PATTERN)

const base64Schema = (maxBytes: number) => z.string().max(Math.ceil(maxBytes / 3) * 4)

/**
 * A recorded command was started, or could not be started (`pid` is null). May be reported again after the box lost its
 * spool.
 */
export const commandStartedSchema = z.object({
  type: z.literal('command.started'),
  commandId: commandIdSchema,
  claimsToken: z
    .string()
    .max(2048)
    .meta({ description: 'from the request, unchanged; identifies the requester and the command' }),
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
  pid: pidSchema.nullable().meta({ description: 'null: the command could not be started' }),
  startedAt: epochMsSchema,
})

/** Bytes of one stream from `offset` on. Repeated bytes are ignored; bytes after a gap replace the bytes before it. */
export const commandOutputReportSchema = z.object({
  type: z.literal('command.output'),
  commandId: commandIdSchema,
  stream: z.enum(COMMAND_STREAMS),
  offset: reportedIntegerSchema,
  data: base64Schema(OUTPUT_CHUNK_BYTES),
})

/** The final report of a command. May contain the last bytes of its output. */
export const commandFinishedSchema = z.object({
  type: z.literal('command.finished'),
  commandId: commandIdSchema,
  status: z.enum(FINAL_COMMAND_STATUSES),
  exitCode: exitCodeSchema.nullable(),
  signal: z
    .string()
    .regex(/^[A-Z0-9+-]{1,32}$/)
    .nullable(),
  finishedAt: epochMsSchema.nullable(),
  stdoutBytes: reportedIntegerSchema.meta({ description: 'length of the stream' }),
  stderrBytes: reportedIntegerSchema,
  stdout: base64Schema(OUTPUT_CHUNK_BYTES / 2)
    .optional()
    .meta({ description: 'the last bytes of the stream' }),
  stderr: base64Schema(OUTPUT_CHUNK_BYTES / 2).optional(),
})

/** What the machine of the box is. Reported after each start of the agent. */
export const machineReportSchema = z.object({ type: z.literal('machine'), machine: machineSchema })

/** Reports that are stored on the box's disk until acknowledged. */
export const durableReportSchema = z.discriminatedUnion('type', [
  agentStartedSchema,
  commandStartedSchema,
  commandOutputReportSchema,
  commandFinishedSchema,
  machineReportSchema,
  metricsSampleSchema,
  processSnapshotReportSchema,
])
export type DurableReport = z.infer<typeof durableReportSchema>
export type CommandReport = Extract<DurableReport, { commandId: string }>

/**
 * One line of the stream. `epoch` identifies the spool: an agent that lost reports starts a new epoch. Sequence numbers
 * increase, with gaps. The coordinator applies each (box, epoch, seq) once. `report` is parsed with `durableReportSchema`. A
 * newer agent may send types that the coordinator does not know: the coordinator skips what has at least a type.
 */
export const reportLineSchema = z.discriminatedUnion('type', [
  heartbeatSchema,
  listenersLineSchema,
  z.object({
    type: z.literal('report'),
    epoch: reportedTextSchema(64),
    seq: reportedIntegerSchema.min(1),
    report: z.unknown(),
  }),
])
export const reportTypeSchema = z.object({ type: z.string() })
export type Heartbeat = z.infer<typeof heartbeatSchema>
export type ListenersLine = z.infer<typeof listenersLineSchema>
