// Shapes that several resources share.
import { z } from 'zod'

export const timestamp = z.iso.datetime().meta({ description: 'RFC 3339, UTC' })
export const micros = z.int().meta({ description: 'micro-dollars: 1000000 is one dollar' })

export const controlError = z
  .looseObject({ error: z.string(), message: z.string().optional() })
  .meta({ id: 'ControlError', description: 'A refusal of the control plane; codes are stable' })

export const edgeError = z
  .object({ ok: z.literal(false), error: z.looseObject({ code: z.string(), message: z.string() }) })
  .meta({ id: 'EdgeError', description: 'A refusal of the edge; codes are stable' })

/** A shell variable's name. */
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
