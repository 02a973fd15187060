// Describes the refusals that the audit log records: the refused credential, the route and the reason.
import type { FastifyRequest } from 'fastify'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import type { ActorIdentity } from './actor.ts'
import { CredentialError } from './auth.ts'

export type Denial = {
  identity: ActorIdentity
  /** false: the credential has expired or been revoked. */
  isLive: boolean
  method: string
  /** The pattern, such as /api/v1/boxes/{id}: the URL may have names and ids of other workspaces. */
  route: string
  code: ErrorCode
  /** What the error names: the missing access, or the policy. */
  fields: Readonly<Record<string, string>>
}

/** Records the denial later. */
export type RecordDenial = (denial: Denial) => void

const DENIAL_CODES: readonly ErrorCode[] = [
  'unauthorized',
  'token_expired',
  'verification_required',
  'key_access_denied',
  'not_owner',
  'not_allowed',
  'policy_denied',
]
const FIELDS = ['area', 'level', 'scope', 'rule'] as const

/** null: the error is no refusal, the route is unknown, or the credential belongs to no workspace. */
export function describeDenial(error: unknown, request: FastifyRequest): Denial | null {
  const { actor, method, routeOptions } = request
  const { url, config } = routeOptions
  if (!(error instanceof ApiError) || !DENIAL_CODES.includes(error.code)) return null
  const identity = actor ?? (error instanceof CredentialError ? error.identity : undefined)
  if (identity === undefined || config.route === undefined || url === undefined) return null
  const fields = FIELDS.flatMap((name) => {
    const value = error.fields[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  const route = url.replace(/:(\w+)/g, '{$1}')
  return {
    identity,
    isLive: actor !== null,
    method,
    route,
    code: error.code,
    fields: Object.fromEntries(fields),
  }
}
