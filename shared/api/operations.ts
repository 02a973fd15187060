// Schema of operations (spec §2.5, §4.7): the progress of the deletion of a box or snapshot.
import * as z from 'zod'
import { timestampSchema } from './common.ts'

export const operationSchema = z
  .object({
    id: z.string(),
    kind: z.enum(['box_delete', 'snapshot_delete']),
    targetId: z.string(),
    status: z.enum(['pending', 'processing', 'completed', 'failed']),
    requestedAt: timestampSchema,
    completedAt: timestampSchema.nullable(),
    error: z.string().nullable(),
  })
  .meta({ id: 'Operation' })
export type Operation = z.infer<typeof operationSchema>

export const operationResponseSchema = z.object({ operation: operationSchema })
