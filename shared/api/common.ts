// Schemas that several resources share. Their error messages start with "must", as validation-message.ts requires.

import * as z from 'zod'
import { OBSERVED_STATES } from '../field-values.ts'
import { MAX_REPORTED_INTEGER, replaceControlCharacters } from '../report-limits.ts'
import { REGIONS, TIER_NAMES } from '../tiers.ts'

export const timestampSchema = z.iso.datetime().meta({ id: 'Timestamp', description: 'RFC 3339, UTC' })

const EMAIL_MAX_CHARS = 254
const EMAIL_RULE = `must be an email address of at most ${EMAIL_MAX_CHARS} characters, such as ada@example.com`
/** Parsed to lowercase. Spaces at both ends are removed. */
export const emailSchema = z
  .string()
  .trim()
  .toLowerCase()
  .max(EMAIL_MAX_CHARS, EMAIL_RULE)
  .regex(z.regexes.email, EMAIL_RULE)
  .meta({
    id: 'Email',
    description: 'an email address. Uppercase letters count as lowercase.',
    format: 'email',
  })

export const boxIdSchema = z.uuid().meta({ id: 'BoxId' })
export const tierSchema = z.enum(TIER_NAMES).meta({ id: 'Tier' })
export const regionSchema = z.enum(REGIONS).meta({ id: 'RegionName' })
export const observedStateSchema = z.enum(OBSERVED_STATES).meta({ id: 'ObservedState' })

export const microDollarsSchema = z.int().meta({ description: 'micro-dollars: 1000000 is one dollar' })

export const controlErrorSchema = z
  .looseObject({ error: z.string(), message: z.string().optional() })
  .meta({ id: 'ControlError', description: 'Error response of the control plane. Codes are stable.' })

export const edgeErrorSchema = z
  .object({ ok: z.literal(false), error: z.looseObject({ code: z.string(), message: z.string() }) })
  .meta({ id: 'EdgeError', description: 'Error response of the edge. Codes are stable.' })

export const bareErrorSchema = z
  .looseObject({ error: z.string() })
  .meta({ id: 'BareError', description: 'Error response of POST /desktop/stop. Codes are stable.' })

/** A length, an offset or a sequence number that a box reports. */
export const reportedIntegerSchema = z.int().min(0).max(MAX_REPORTED_INTEGER)
/** Milliseconds since the epoch, by the clock of the box. The maximum is the end of 9999, the last year of RFC 3339. */
export const epochMsSchema = z.int().min(0).max(253_402_300_799_999)
export const pidSchema = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)
/** Text that a box reports, such as the name of a process: each control or unassigned character is replaced. */
export const reportedTextSchema = (maxChars: number) =>
  z.string().max(maxChars).overwrite(replaceControlCharacters)

export const noNul = (text: string): boolean => !text.includes('\0')
export const NO_NUL_RULE = 'must not contain a NUL byte'
/** A name that people choose and terminals print. Spaces at both ends are removed. */
export function displayNameSchema(maxChars: number) {
  const rule = `must be 1 to ${maxChars} characters without control characters`
  return z
    .string()
    .trim()
    .min(1, rule)
    .max(maxChars, rule)
    .refine((text) => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text), rule)
}

export const exitCodeSchema = z.int().min(0).max(255)

export const ENV_NAME_RULE =
  'must start with a letter or underscore and contain only letters, digits and underscores'

const formatRangeRule = (min: number, max: number) => `must be an integer between ${min} and ${max}`

/** Checks the length before the items: the check of each item takes time and may add an issue. */
export const boundedArray = <T extends z.ZodType>(item: T, max: number) =>
  z.array(z.unknown()).max(max).pipe(z.array(item).max(max))

/** A JSON integer. */
export function integerBetween(min: number, max: number) {
  const rule = formatRangeRule(min, max)
  return z.int(rule).min(min, rule).max(max, rule)
}

/** Decimal digits only: Number() also accepts forms such as 0x10, 1e2 and the empty string. */
const fromDigits = (text: unknown): unknown =>
  typeof text === 'string' && /^\d+$/.test(text) ? Number(text) : text

/** An integer in a query string, where every value is text. */
export const queryIntegerBetween = (min: number, max: number) =>
  z.preprocess(fromDigits, integerBetween(min, max))

/** A flag in a query string. Descriptions name the form 1. */
export const queryFlag = () =>
  z.enum(['1', '0', 'true', 'false'], 'must be 1 or 0').transform((text) => text === '1' || text === 'true')

/** The position in a list, which the previous page has returned. */
export const cursorSchema = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .meta({ description: 'nextBefore of the previous page', param: { id: 'before' } })

/** The cursor of a list with pages; of one that is complete without `limit` and `before`, absent then. */
export const nextBeforeSchema = z.string().nullable().meta({
  id: 'NextBefore',
  description: 'value of `before` for the next page; null on the last page',
})

/** A non-negative integer in a query string, such as a byte offset. */
export function queryOffset() {
  const rule = 'must be a non-negative integer'
  return z.preprocess(fromDigits, z.int(rule).min(0, rule).max(Number.MAX_SAFE_INTEGER, rule))
}
