// Decides when the signing keys change. Pure functions; times are milliseconds since the epoch.
import type { FederationKeyRow } from '../../db/schema.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The longest life of a token. */
export const TOKEN_MS = HOUR_MS
export const ROTATION_MS = 30 * DAY_MS
/** A verifier may have cached documents without the next key: it is published this long before it signs. */
export const PUBLISHED_BEFORE_USE_MS = DAY_MS
/** A retired key stays published until its last token has expired everywhere. */
export const RETIRED_MS = TOKEN_MS + DAY_MS

export type KeyTimes = Pick<FederationKeyRow, 'id' | 'state' | 'created_at' | 'activated_at' | 'retired_at'>

export type RotationPlan = {
  /** The next key becomes active, and the active one is retired. null: no change. */
  promote: { next: string; active: string } | null
  /** The states of the keys to create. */
  create: ('next' | 'active')[]
  /** The retired keys to delete. */
  remove: string[]
}

/** @param options.isRequested rotates also before the active key is 30 days old */
export function planRotation(
  keys: readonly KeyTimes[],
  now: number,
  { isRequested = false }: { isRequested?: boolean } = {},
): RotationPlan {
  const active = keys.find(({ state }) => state === 'active')
  const next = keys.find(({ state }) => state === 'next')
  const remove = keys
    .filter(({ state, retired_at }) => state === 'retired' && now >= (retired_at ?? now) + RETIRED_MS)
    .map(({ id }) => id)
  if (active === undefined) return { promote: null, create: next ? ['active'] : ['active', 'next'], remove }
  if (next === undefined) return { promote: null, create: ['next'], remove }
  const isDue = isRequested || now >= (active.activated_at ?? now) + ROTATION_MS
  if (!isDue || now < getFirstUse(next)) return { promote: null, create: [], remove }
  return { promote: { next: next.id, active: active.id }, create: ['next'], remove }
}

/** The earliest time at which the next key may sign. */
export const getFirstUse = ({ created_at }: Pick<KeyTimes, 'created_at'>): number =>
  created_at + PUBLISHED_BEFORE_USE_MS
