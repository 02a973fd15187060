// Creates and validates ids (spec §2.1). Creates box tokens and tickets.
import { randomBytes, randomUUID } from 'node:crypto'

const PREFIXES = {
  apiKey: 'key',
  archive: 'arc',
  conversation: 'cv',
  enrollment: 'enr',
  operation: 'dop',
  process: 'p',
  run: 'run',
  snapshot: 'snp',
  event: 'evt',
  session: 'ses',
  signInCode: 'sic',
  ticket: 'tkt',
  user: 'usr',
  workspace: 'ws',
} as const

export type IdKind = keyof typeof PREFIXES

/** Creates a prefixed id of 96 random bits in hex, such as `dop_9f2c…`. */
export function newId(kind: IdKind): string {
  return `${PREFIXES[kind]}_${randomBytes(12).toString('hex')}`
}

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const newUuid = (): string => randomUUID()
export const isUuid = (text: string): boolean => UUID_PATTERN.test(text)
export const isId = (kind: IdKind, text: string): boolean =>
  text.startsWith(`${PREFIXES[kind]}_`) && /^[0-9a-zA-Z_]{3,64}$/.test(text)

/** Creates a terminal ticket (spec §5.10). */
export const newTicketSecret = (): string => `dct_${randomBytes(24).toString('hex')}`

/** Creates the token with which a box's agent authenticates. */
export const newBoxToken = (): string => `bxt_${randomBytes(24).toString('hex')}`
