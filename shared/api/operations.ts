// Schema of operations, which report the progress of long deletes (spec §2.5, §4.7).
import { z } from 'zod'
import { timestamp } from './common.ts'

export const operation = z
  .object({
    id: z.string(),
    kind: z.enum(['box_delete', 'snapshot_delete']),
    targetId: z.string(),
    status: z.enum(['pending', 'processing', 'completed', 'failed']),
    requestedAt: timestamp,
    completedAt: timestamp.nullable(),
    error: z.string().nullable(),
  })
  .meta({ id: 'Operation' })
export type Operation = z.infer<typeof operation>

export const operationResponse = z.object({ operation })
