// Schemas of POST /reports/next, with which the coordinator acknowledges reports and requests further ones.
import * as z from 'zod'
import { epochMsSchema, reportedIntegerSchema } from './common.ts'

/** One of the `acks` of POST /reports/next: every report up to and including `seq` is committed. `now`: the time of the coordinator. */
export const reportAckSchema = z.object({
  epoch: z.string(),
  seq: reportedIntegerSchema,
  now: epochMsSchema.optional(),
})
export type ReportAck = z.infer<typeof reportAckSchema>

/**
 * POST /reports/next, whose response has lines of the stream. The first request of a connection, and the first after a
 * failed commit, starts with the reports that are not acknowledged.
 */
export const nextReportsSchema = z.object({
  isFirst: z.boolean(),
  /** For the lines of the last response. */
  acks: z.array(reportAckSchema),
})
export type NextReports = z.infer<typeof nextReportsSchema>
