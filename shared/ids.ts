// Creates and validates ids (spec §2.1). Creates box tokens and tickets.
import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'

const PREFIXES = {
  apiKey: 'key',
  archive: 'arc',
  awsConnect: 'awc',
  awsRole: 'awr',
  conversation: 'cv',
  enrollment: 'enr',
  environment: 'env',
  environmentFile: 'evf',
  host: 'hst',
  operation: 'dop',
  portShare: 'shr',
  process: 'p',
  replica: 'rep',
  run: 'run',
  secret: 'sec',
  secretGrant: 'sgr',
  secretMount: 'smt',
  snapshot: 'snp',
  event: 'evt',
  session: 'ses',
  shareViewer: 'shv',
  signInCode: 'sic',
  ticket: 'tkt',
  user: 'usr',
  workspace: 'ws',
} as const

export type IdKind = keyof typeof PREFIXES

/** Random bytes for several ids: each call of the generator takes longer than an id. */
const pool = Buffer.alloc(4096)
let poolOffset = pool.length

/** Returns random bytes in hex. */
function randomHex(bytes: number): string {
  if (poolOffset + bytes > pool.length) {
    randomFillSync(pool)
    poolOffset = 0
  }
  poolOffset += bytes
  return pool.toString('hex', poolOffset - bytes, poolOffset)
}

/** Creates a prefixed id of 96 random bits in hex, such as `dop_9f2c…`. */
export const newId = (kind: IdKind): string => `${PREFIXES[kind]}_${randomHex(12)}`

export const newUuid = (): string => randomUUID()
export const isId = (kind: IdKind, text: string): boolean =>
  text.startsWith(`${PREFIXES[kind]}_`) && /^[0-9a-zA-Z_]{3,64}$/.test(text)

/** Creates a terminal ticket (spec §5.10). */
export const newTicketSecret = (): string => `dct_${randomBytes(24).toString('hex')}`

/** Creates the token with which a box's agent authenticates. */
export const newBoxToken = (): string => `bxt_${randomBytes(24).toString('hex')}`
