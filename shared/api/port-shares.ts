// Schemas of shared ports (spec §4.5): the listening ports of a box. Ports cannot be shared yet.
import { z } from 'zod'
import { timestampSchema } from './common.ts'
import { listeningPortSchema } from './process-snapshots.ts'

/** Who may open a shared port. */
export const PORT_AUDIENCES = ['members', 'anyone', 'public'] as const

const modeSchema = z.union([
  z.object({ allowed: z.literal(true) }),
  z.object({ allowed: z.literal(false), error: z.string(), message: z.string() }),
])

export const listeningSchema = z
  .object({
    at: timestampSchema.meta({ description: 'when the box last confirmed the list' }),
    ports: z.array(listeningPortSchema).meta({ description: 'listening TCP ports, ascending' }),
  })
  .meta({ id: 'Listening' })
export type Listening = z.infer<typeof listeningSchema>

export const portSharesSchema = z
  .object({
    enabled: z.boolean().meta({ description: 'whether ports can be shared with members' }),
    linksEnabled: z.boolean().meta({ description: 'whether ports can be shared by link' }),
    modes: z
      .record(z.enum(PORT_AUDIENCES), modeSchema)
      .meta({ description: 'by audience: what sharing a port would respond' }),
    shares: z.array(z.never()).meta({ description: 'always empty' }),
    listening: listeningSchema.nullable().meta({
      description: 'null when the box has not reported for three minutes, and while it is suspended',
    }),
  })
  .meta({ id: 'PortShares' })
export type PortShares = z.infer<typeof portSharesSchema>
