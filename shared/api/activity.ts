// Schema of GET /activity, with which the coordinator asks an agent whether its box is idle.
import * as z from 'zod'
import { reportedIntegerSchema } from './common.ts'

export const activitySchema = z.object({
  /** Whole seconds since the last activity; 0 while a command runs or a terminal is open. */
  idleForSec: reportedIntegerSchema,
})
export type Activity = z.infer<typeof activitySchema>
