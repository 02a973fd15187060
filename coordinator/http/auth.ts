// Authenticates requests (spec §5). Every request looks up its credential, so that a revocation is immediate.
import type { IncomingHttpHeaders } from 'node:http'
import { parseCookie } from 'cookie'
import { isMistypedApiKey } from '../../shared/api-key-checksum.ts'
import { toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import type { Actor, ActorIdentity } from './actor.ts'
import { hashSecret } from './hash-secret.ts'

export type CredentialLookup =
  | { actor: Actor }
  | { rejected: 'unknown' }
  | { rejected: 'revoked'; identity?: ActorIdentity }
  | { rejected: 'expired'; expiresAt: number; identity?: ActorIdentity }

type ExpiredCredential = Extract<CredentialLookup, { rejected: 'expired' }>

/** Finds the actor of the credential with this SHA-256 (hex). */
export type FindCredential = (hash: string) => Promise<CredentialLookup>

export type CredentialFinders = {
  findKey: FindCredential
  findSession: FindCredential
  findTicket: FindCredential
}

/** The credential was valid, and has expired or been revoked. */
export class CredentialError extends ApiError {
  /** The audit log records the identity. The client does not receive it. */
  readonly identity: ActorIdentity | undefined

  constructor(identity: ActorIdentity | undefined, ...error: ConstructorParameters<typeof ApiError>) {
    super(...error)
    this.identity = identity
  }
}

const BEARER = /^Bearer +([\x21-\x7e]{1,300})$/i
const TICKET = /^dct_[0-9A-Za-z]{1,100}$/
/** No route accepts monitor tickets (spec §5.10). */
const MONITOR_TICKET = /^Bearer +dcm_/i
/** Keys of tests and of earlier versions have no checksum. */
const KEY = /^dcp_[\x21-\x7e]{1,200}$/
/** A client of a WebSocket in a browser cannot set headers: it sends its ticket as a subprotocol. */
const TICKET_PROTOCOL = /(?:^|,)\s*boxwood\.ticket\.(dct_[0-9A-Za-z]{1,100})\s*(?:,|$)/

export const isMonitorTicket = (authorization: string | undefined): boolean =>
  MONITOR_TICKET.test(authorization ?? '')

export const formatAuthenticateHeader = (error?: string) => ({
  'www-authenticate': error === undefined ? 'Bearer' : `Bearer error="${error}"`,
})

const UNKNOWN: CredentialLookup = { rejected: 'unknown' }

async function findTicket(ticket: string, finders: CredentialFinders): Promise<CredentialLookup> {
  const found = await finders.findTicket(hashSecret(ticket))
  if ('actor' in found) return found
  if (found.rejected === 'expired')
    throw createExpiredError(found, 'This ticket has expired. Create another ticket.')
  throw new CredentialError(
    found.rejected === 'revoked' ? found.identity : undefined,
    'unauthorized',
    'The ticket is not valid, or its session has ended. Create another one.',
    {
      headers: formatAuthenticateHeader('invalid_token'),
    },
  )
}

const createExpiredError = ({ expiresAt, identity }: ExpiredCredential, message?: string) =>
  new CredentialError(identity, 'token_expired', message, {
    headers: formatAuthenticateHeader('invalid_token'),
    fields: { expiresAt: toTimestamp(expiresAt) },
  })

/** Returns the token of a dashboard session, which may have ended. */
export const readSessionCookie = ({ cookie }: IncomingHttpHeaders): string | undefined =>
  cookie === undefined ? undefined : parseCookie(cookie)[SESSION_COOKIE]

async function find(headers: IncomingHttpHeaders, finders: CredentialFinders): Promise<CredentialLookup> {
  const { authorization } = headers
  if (authorization !== undefined) {
    const bearer = BEARER.exec(authorization)?.[1] ?? ''
    if (TICKET.test(bearer)) return findTicket(bearer, finders)
    if (!KEY.test(bearer)) return UNKNOWN
    if (isMistypedApiKey(bearer))
      throw new ApiError('unauthorized', 'This API key has a typing error. Copy it again.', {
        headers: formatAuthenticateHeader('invalid_token'),
      })
    return finders.findKey(hashSecret(bearer))
  }
  const ticket = TICKET_PROTOCOL.exec(headers['sec-websocket-protocol'] ?? '')?.[1]
  if (ticket !== undefined) return findTicket(ticket, finders)
  const session = readSessionCookie(headers)
  return session ? finders.findSession(hashSecret(session)) : UNKNOWN
}

/**
 * Authenticates by API key or terminal ticket in the Authorization header, else by the cookie of a dashboard session.
 * @throws ApiError unauthorized; token_expired with `expiresAt`; control_plane_unavailable when the lookup fails
 * @param message of unauthorized. Default: an API key is needed.
 */
export async function authenticate(
  headers: IncomingHttpHeaders,
  finders: CredentialFinders,
  message?: string,
): Promise<Actor> {
  const found = await find(headers, finders).catch(throwUnavailable)
  if ('actor' in found) return found.actor
  if (found.rejected === 'expired') throw createExpiredError(found)
  const identity = found.rejected === 'revoked' ? found.identity : undefined
  throw new CredentialError(identity, 'unauthorized', message, { headers: formatAuthenticateHeader() })
}

function throwUnavailable(cause: unknown): never {
  if (cause instanceof ApiError) throw cause
  throw new ApiError('control_plane_unavailable', 'The coordinator cannot check the API key. Try again.', {
    headers: { 'retry-after': '1' },
    cause,
  })
}
