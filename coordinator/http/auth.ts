// Authenticates requests by bearer key (spec §5). Every request looks up its key, so that revocation is immediate.
import { toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { hashSecret, type KeyLookupResult } from '../account/keys.ts'
import type { Actor } from './actor.ts'

/** Finds the actor of the key with this SHA-256 (hex). */
export type FindKey = (hash: string) => Promise<KeyLookupResult>

const BEARER = /^Bearer +(dcp_[\x21-\x7e]{1,200})$/i

/** Throws unauthorized, token_expired with `expiresAt`, or control_plane_unavailable when the lookup fails. */
export async function authenticate(authorization: string | undefined, findKey: FindKey): Promise<Actor> {
  const key = BEARER.exec(authorization ?? '')?.[1]
  const found: KeyLookupResult =
    key === undefined ? { rejected: 'unknown' } : await findKey(hashSecret(key)).catch(throwUnavailable)
  if ('actor' in found) return found.actor
  if (found.rejected === 'expired')
    throw new ApiError('token_expired', undefined, {
      headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      fields: { expiresAt: toTimestamp(found.expiresAt) },
    })
  throw new ApiError('unauthorized', undefined, { headers: { 'www-authenticate': 'Bearer' } })
}

function throwUnavailable(cause: unknown): never {
  throw new ApiError('control_plane_unavailable', 'The coordinator cannot check the API key. Try again.', {
    headers: { 'retry-after': '1' },
    cause,
  })
}
