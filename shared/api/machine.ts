// Schema of what the machine of a box is (spec §4.3).
import * as z from 'zod'
import { reportedIntegerSchema, reportedTextSchema } from './common.ts'

const machineTextSchema = reportedTextSchema(200)
export const machineSchema = z
  .object({
    os: machineTextSchema.meta({ description: 'distribution and version' }),
    kernel: machineTextSchema.meta({ description: 'release of the kernel' }),
    arch: machineTextSchema.meta({ description: 'as in Node, such as x64 or arm64' }),
    cpuModel: machineTextSchema,
    cpuCount: z.number().min(0).max(65_536).nullable().meta({ description: 'CPUs; may be a fraction' }),
    memoryBytes: reportedIntegerSchema.nullable(),
    diskBytes: reportedIntegerSchema.nullable(),
  })
  .meta({
    id: 'Machine',
    description: 'The machine of a box, with the limits of the box. null: not limited, or not known.',
  })
export type Machine = z.infer<typeof machineSchema>
