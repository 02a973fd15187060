// Who is calling: the bearer key, looked up anew for every request, so that a revoked one stops at once (spec §5).
import { toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { type Found, hashOf } from '../account/keys.ts'
import type { Actor } from './actor.ts'

/** Whose the key with this SHA-256 (hex) is, now. */
export type FindKey = (hash: string) => Promise<Found>

const BEARER = /^Bearer +(dcp_[\x21-\x7e]{1,200})$/i

/** Throws unauthorized, or token_expired with `expiresAt`. */
export async function authenticate(authorization: string | undefined, findKey: FindKey): Promise<Actor> {
  const key = BEARER.exec(authorization ?? '')?.[1]
  const found: Found = key === undefined ? { refused: 'unknown' } : await findKey(hashOf(key))
  if ('actor' in found) return found.actor
  if (found.refused === 'expired')
    throw new ApiError('token_expired', undefined, {
      headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      fields: { expiresAt: toTimestamp(found.expiresAt) },
    })
  throw new ApiError('unauthorized', undefined, { headers: { 'www-authenticate': 'Bearer' } })
}
