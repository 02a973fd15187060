// Schemas of process snapshots (the agent's reports, and GET /boxes/{id}/procs-at of spec §4.3) and of listening ports.

import * as z from 'zod'
import {
  MAX_DELTA_CHARS,
  MAX_LISTENING_PORTS,
  MAX_RSS_KIB,
  MAX_SNAPSHOT_PROCESSES,
  SNAPSHOT_COMMAND_CHARS,
} from '../report-limits.ts'
import {
  boundedArray,
  pidSchema,
  reportedIntegerSchema,
  reportedTextSchema,
  timestampSchema,
} from './common.ts'
import { queryInstantSchema } from './request-times.ts'

/** Milliseconds since the epoch, until the end of 9999. */
const instantSchema = z.int().min(0).max(253_402_300_799_999)

/** A tuple, because a snapshot has many of them: pid, parent, start, user, name, command (null: not recorded). */
export const deltaProcessSchema = z.tuple([
  pidSchema,
  pidSchema,
  instantSchema,
  reportedTextSchema(64),
  reportedTextSchema(64),
  reportedTextSchema(SNAPSHOT_COMMAND_CHARS).nullable(),
])
export type DeltaProcess = z.infer<typeof deltaProcessSchema>
/** pid, tenths of a percent of one CPU since the previous snapshot, growth of the resident KiB (absent: unchanged). */
const deltaUsageSchema = z.tuple([
  pidSchema,
  z.int().min(0).max(1e9),
  z.int().min(-MAX_RSS_KIB).max(MAX_RSS_KIB).optional(),
])
/** port, pid (null: unknown), process name (null: unknown). */
const listeningTupleSchema = z.tuple([
  z.int().min(1).max(65_535),
  pidSchema.nullable(),
  reportedTextSchema(64).nullable(),
])
export const listeningTuplesSchema = boundedArray(listeningTupleSchema, MAX_LISTENING_PORTS)
export type ListeningTuple = z.infer<typeof listeningTupleSchema>

/** The differences from the snapshot at `previousAt`; a complete snapshot when that is null. */
export const processDeltaSchema = z.object({
  /** New processes, and those whose fields changed. */
  added: boundedArray(deltaProcessSchema, MAX_SNAPSHOT_PROCESSES),
  removed: boundedArray(pidSchema, MAX_SNAPSHOT_PROCESSES),
  /** New processes, and those whose usage changed. */
  usage: boundedArray(deltaUsageSchema, MAX_SNAPSHOT_PROCESSES),
  /** All listening ports. Absent: unchanged. */
  ports: listeningTuplesSchema.optional(),
  /** All processes of the box, including those that are not listed. */
  total: reportedIntegerSchema,
})
export type ProcessDelta = z.infer<typeof processDeltaSchema>

/**
 * The agent sends a complete snapshot at its start, in each new hour (UTC) of `at`, and after its clock was set back.
 * `delta` is the JSON text of a ProcessDelta: one token of the report line, which has a bound on its tokens.
 */
export const processSnapshotReportSchema = z.object({
  type: z.literal('processes.snapshot'),
  at: instantSchema,
  previousAt: instantSchema.nullable(),
  delta: z.string().max(MAX_DELTA_CHARS),
})
export type ProcessSnapshotReport = z.infer<typeof processSnapshotReportSchema>

/**
 * The listening ports, sent at the start of the stream and when they change. Like a heartbeat, the line has no sequence
 * number and is not stored on the box. `ports` is the JSON text of ListeningTuples.
 */
export const listenersLineSchema = z.object({
  type: z.literal('listeners'),
  at: instantSchema,
  ports: z.string().max(64 * 1024),
})

export const listeningPortSchema = z
  .object({
    port: z.int(),
    process: z.string().nullable().meta({ description: 'the name of the process; null: unknown' }),
    pid: z.int().nullable(),
  })
  .meta({ id: 'ListeningPort' })
export type ListeningPort = z.infer<typeof listeningPortSchema>

export const toListeningPort = ([port, pid, process]: ListeningTuple): ListeningPort => ({
  port,
  process,
  pid,
})

export const snapshotProcessSchema = z
  .object({
    pid: z.int(),
    ppid: z.int().meta({ description: 'the pid of the parent; 0: none in the box' }),
    user: z.string().meta({ description: 'the name of the user, or its number' }),
    name: z.string().meta({ description: 'the file name of the program, or what the process chose' }),
    command: z
      .string()
      .nullable()
      .meta({ description: `the first ${SNAPSHOT_COMMAND_CHARS} characters; null: not recorded` }),
    cpuPct: z.number().meta({
      description:
        'percent of one CPU since the previous snapshot; in the first one of an agent, since the start of the process',
    }),
    memBytes: z.int().meta({ description: 'resident memory, rounded to 0.4 percent' }),
    startedAt: timestampSchema,
  })
  .meta({ id: 'SnapshotProcess' })
export type SnapshotProcess = z.infer<typeof snapshotProcessSchema>

export const procsAtQuerySchema = z.object({ t: queryInstantSchema })

export const procsAtSchema = z
  .object({
    v: z.literal(1).meta({ description: 'version of this format' }),
    at: timestampSchema.meta({ description: 'when the snapshot was taken' }),
    procs: z.array(snapshotProcessSchema).meta({ description: 'by pid, ascending' }),
    ports: z.array(listeningPortSchema).meta({ description: 'listening TCP ports, ascending' }),
    total: z.int().meta({
      description: `processes of the box; larger than the number of procs when there were more than ${MAX_SNAPSHOT_PROCESSES}`,
    }),
  })
  .meta({ id: 'ProcsAt' })
export type ProcsAt = z.infer<typeof procsAtSchema>
