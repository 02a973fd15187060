// What the agent tells without being asked: NDJSON on one long answer (GET /reports), acknowledged by sequence.
import { z } from 'zod'
import { vitals } from './boxes.ts'

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

/** Reports that must arrive: kept on the box's disk until acknowledged. New kinds go into this union. */
export const durableReport = z.discriminatedUnion('type', [agentStarted])
export type DurableReport = z.infer<typeof durableReport>

/**
 * A line of the stream. `epoch` names the spool: a box whose state was lost starts a new one at 1, and the
 * store applies (box, epoch, seq) once.
 */
export const reportLine = z.union([
  heartbeat,
  z.object({
    type: z.literal('report'),
    epoch: z.string().max(64),
    seq: z.int().min(1),
    report: durableReport,
  }),
])
export type Heartbeat = z.infer<typeof heartbeat>
export type ReportLine = z.infer<typeof reportLine>

/** POST /reports/ack: every report up to and including seq is committed. */
export const reportAck = z.object({ epoch: z.string(), seq: z.int().min(0) })
export type ReportAck = z.infer<typeof reportAck>
