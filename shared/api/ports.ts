// Schemas of connections to the TCP ports of a box.
import * as z from 'zod'
import { queryIntegerBetween } from './common.ts'

/** A port in a path. */
export const portParamSchema = queryIntegerBetween(1, 65_535).meta({
  description: 'a TCP port',
  example: 5432,
})

export const portParams = z.object({ port: portParamSchema })
