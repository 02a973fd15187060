// Identifier forms (spec §2.1): how each kind of id is made, and how a string is recognised as one.
import { randomBytes, randomUUID } from 'node:crypto'

const PREFIXES = {
  apiKey: 'key',
  operation: 'dop',
  process: 'p',
  event: 'evt',
  user: 'usr',
  workspace: 'ws',
} as const

export type IdKind = keyof typeof PREFIXES

/** A new id of the prefixed form, e.g. `dop_9f2c…`: 96 random bits in hex. */
export function newId(kind: IdKind): string {
  return `${PREFIXES[kind]}_${randomBytes(12).toString('hex')}`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const newUuid = (): string => randomUUID()
export const isUuid = (text: string): boolean => UUID.test(text)
export const isId = (kind: IdKind, text: string): boolean =>
  text.startsWith(`${PREFIXES[kind]}_`) && /^[0-9a-zA-Z_]{3,64}$/.test(text)

/** A new API key (spec §5.1): `dcp_` and 192 random bits. Only its hash is ever stored. */
export const newApiKey = (): string => `dcp_${randomBytes(24).toString('hex')}`
/** A secret that a box presents for itself alone. */
export const newBoxToken = (): string => `bxt_${randomBytes(24).toString('hex')}`
