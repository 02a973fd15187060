// Times in requests: RFC 3339 with Z or an offset, or epoch seconds. Responses have RFC 3339 in UTC.
import * as z from 'zod'
import { toTimestamp } from '../clock.ts'

/** For descriptions. */
export const INSTANT_FORMAT =
  'RFC 3339, such as 2026-01-31T03:14:00Z or 2026-01-31T04:14:00+01:00, or epoch seconds.'
export const INSTANT_RULE =
  'must be RFC 3339 with Z or an offset, such as 2026-01-31T03:14:00Z, or epoch seconds'

const EPOCH_SECONDS = /^\d{1,12}(\.\d{1,9})?$/
const dateTimeSchema = z.iso.datetime({ offset: true })
/** The end of a time without seconds, which ISO 8601 allows. */
const WITHOUT_SECONDS = /(?<=T\d{2}:\d{2})(?=Z|[+-])/
/** In milliseconds since the epoch. RFC 3339 has years of four digits. */
const END_OF_9999 = 253_402_300_799_999

/** Returns milliseconds since the epoch; null for a value in another format. */
export function parseInstant(value: string | number): number | null {
  const text = String(value)
  if (EPOCH_SECONDS.test(text)) return toPossibleInstant(Number(text) * 1000)
  const dateTime = text.replace(WITHOUT_SECONDS, ':00')
  return dateTimeSchema.safeParse(dateTime).success ? toPossibleInstant(Date.parse(dateTime)) : null
}

const toPossibleInstant = (ms: number): number | null => (ms <= END_OF_9999 ? Math.round(ms) : null)

/** A parameter of a query, parsed to milliseconds since the epoch. */
export const queryInstantSchema = z
  .string()
  .transform((text, context) => {
    const ms = parseInstant(text)
    if (ms !== null) return ms
    context.addIssue(INSTANT_RULE)
    return z.NEVER
  })
  .meta({ id: 'Instant', description: INSTANT_FORMAT })

/** A field of a body, or a parameter that is forwarded, parsed to RFC 3339 in UTC. Epoch seconds may be a number in JSON. */
export const requestTimestampSchema = z
  .union([z.string(), z.number()], INSTANT_RULE)
  .transform((value, context) => {
    const ms = parseInstant(value)
    if (ms !== null) return toTimestamp(ms)
    context.addIssue(INSTANT_RULE)
    return z.NEVER
  })
