// Schemas of GET /processes on the edge: the processes of a running box, for `box top`. Not in the spec.
import * as z from 'zod'
import { COMMAND_ID_PATTERN } from '../field-values.ts'
import {
  boundedArray,
  pidSchema,
  reportedIntegerSchema,
  reportedTextSchema,
  timestampSchema,
} from './common.ts'

/** Processes of one response: those with the most CPU usage, then those with the most memory. */
export const MAX_LIVE_PROCESSES = 1000
export const LIVE_COMMAND_CHARS = 1024

export const liveProcessesQuerySchema = z.object({
  processId: z
    .string()
    .regex(COMMAND_ID_PATTERN, 'must be the id of a command, such as p_0123456789abcdef01234567')
    .optional()
    .meta({ description: 'only the processes that this command has started' }),
})

export const liveProcessSchema = z
  .object({
    pid: pidSchema,
    ppid: pidSchema,
    user: reportedTextSchema(64),
    name: reportedTextSchema(64),
    command: reportedTextSchema(LIVE_COMMAND_CHARS),
    state: z
      .string()
      .regex(/^[A-Za-z]$/)
      .meta({ description: 'the state letter of ps, such as R, S, D or Z' }),
    threads: reportedIntegerSchema,
    cpuPct: z
      .number()
      .min(0)
      .max(1e7)
      .meta({ description: 'percent of one CPU, over the last 0.5 to 5 seconds' }),
    memBytes: reportedIntegerSchema.meta({ description: 'resident memory' }),
    startedAt: timestampSchema.nullable(),
    processId: z
      .string()
      .max(64)
      .nullable()
      .meta({ description: 'of the command that started it or its parent' }),
    role: z.enum(['init', 'agent']).nullish().meta({
      description: 'init and agent run the box: a signal to them interrupts it; null: a process of its users',
    }),
  })
  .meta({ id: 'LiveProcess' })
export type LiveProcess = z.infer<typeof liveProcessSchema>

export const liveProcessesSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('process.list'),
    at: timestampSchema,
    cpuPct: z.number().min(0).max(100).nullable().meta({
      description: 'CPU usage of all processes of the box, also with processId, in percent of cpuCount',
    }),
    cpuCount: z.number().min(0).max(65_536).nullable(),
    memUsedBytes: reportedIntegerSchema
      .nullable()
      .meta({ description: 'memory of the box, measured as mem_used_bytes of the metrics' }),
    memTotalBytes: reportedIntegerSchema.nullable(),
    total: reportedIntegerSchema.meta({ description: 'all processes of the box, or of the command' }),
    processes: boundedArray(liveProcessSchema, MAX_LIVE_PROCESSES).meta({
      description: 'by CPU usage, descending',
    }),
  })
  .meta({ id: 'LiveProcesses' })
export type LiveProcesses = z.infer<typeof liveProcessesSchema>
