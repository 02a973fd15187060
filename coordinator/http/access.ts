// Declares and enforces who may use a route (spec §5). Which boxes an actor may use is checked by each resource.
import type { AccessArea, AccessLevel, AccessLevels } from '../../shared/api/account.ts'
import { ApiError } from '../../shared/errors.ts'
import type { ACCESS_LEVELS } from '../../shared/field-values.ts'
import type { Actor, Credential } from './actor.ts'

const RANK = { none: 0, read: 1, run: 2, write: 3 } as const

/**
 * Returns a number for comparisons: a higher level allows what a lower one allows. A level that a later version has stored is
 * unknown, and allows nothing.
 * @param levels null: the key is not limited
 */
export const rankLevel = (levels: AccessLevels | null, area: AccessArea): number =>
  RANK[levels === null ? 'write' : (levels[area] ?? 'none')] ?? RANK.none

/** `not_contractor`: owners and members. `owner`: owners only. */
export type AllowedRoles = 'any' | 'not_contractor' | 'owner'

type RequiredLevel<Area extends AccessArea> = Exclude<(typeof ACCESS_LEVELS)[Area][number], 'none'>

/** The actor alone decides the access. */
export type ActorAccess =
  /** Needs no credential, and reads none. */
  | { credential: 'none' }
  /** Needs a dashboard session; API keys get 401 unauthorized (spec §5.7). */
  | { credential: 'session'; roles: AllowedRoles }
  /** Accepts API keys; on the control plane also dashboard sessions. */
  | {
      credential: 'key'
      /** What a limited key needs (spec §5.8); null: nothing. */
      area: AccessArea | null
      level: Exclude<AccessLevel, 'none'>
      /** A limited key that reads the command history does not need the level. */
      orReadsHistory: boolean
      /** `workspace`: keys that are limited to boxes get key_access_denied (spec §5.9). */
      scope: 'boxes' | 'workspace'
      roles: AllowedRoles
      /** Accepts terminal tickets (spec §5.10). */
      acceptsTickets: boolean
      /** Accepts keys whose emailed code is not confirmed (spec §5.3). */
      acceptsUnverified: boolean
      /** Refuses monitor tickets with 403 not_allowed (spec §7.1) instead of 401 unauthorized. */
      forbidsMonitorTickets: boolean
    }

/** Every route declares its access with one of the functions below. */
export type Access = ActorAccess | { credential: 'operator' }

type KeyAccess = Extract<Access, { credential: 'key' }>

export const withoutCredential: ActorAccess = { credential: 'none' }

export const bySession = (roles: AllowedRoles = 'any'): ActorAccess => ({ credential: 'session', roles })

/**
 * For the operator of the coordinator, about everything that is not of one workspace. An API key with levels gives rights in its
 * workspace only: of all keys, the route accepts the key of the machine (identity/assert-operator.ts).
 */
export const byOperator = (): Access => ({ credential: 'operator' })

/** Routes of the area `workspace` are workspace-wide unless `options` says otherwise. */
export const byKey = <Area extends AccessArea>(
  area: Area | null,
  level: RequiredLevel<Area>,
  options: Partial<
    Pick<
      KeyAccess,
      'orReadsHistory' | 'scope' | 'roles' | 'acceptsTickets' | 'acceptsUnverified' | 'forbidsMonitorTickets'
    >
  > = {},
): ActorAccess => ({
  credential: 'key',
  area,
  level,
  orReadsHistory: false,
  scope: area === 'workspace' ? 'workspace' : 'boxes',
  roles: 'any',
  acceptsTickets: false,
  acceptsUnverified: false,
  forbidsMonitorTickets: false,
  ...options,
})

export const NO_MONITOR_TICKETS = 'Monitor tickets cannot report events. Use an API key.'

export const NEEDS_SESSION =
  'This request needs a dashboard session; API keys cannot send it. Sign in with `box login` or at /sign-in.'

export const NEEDS_OPERATOR =
  'This request is for the operator of the coordinator. Send it with the `boxwood` command on the machine of the coordinator, or with a dashboard session of an owner of the first workspace.'

/** The message of a request without a credential. undefined: that of the code. */
export function describeCredential(access: Access | undefined): string | undefined {
  if (access?.credential === 'session') return NEEDS_SESSION
  return access?.credential === 'operator' ? NEEDS_OPERATOR : undefined
}

/** Throws unauthorized when the route does not accept this kind of credential. */
function assertCredential({ type }: Credential, access: ActorAccess, host: 'control' | 'edge'): void {
  if (access.credential === 'none') return
  if (type === 'session' && host === 'control') return
  if (type === 'key' && access.credential === 'key') return
  if (type === 'ticket' && access.credential === 'key' && access.acceptsTickets) return
  if (access.credential === 'session') throw new ApiError('unauthorized', NEEDS_SESSION)
  throw new ApiError('unauthorized', 'This request needs an API key. Send it as Authorization: Bearer dcp_….')
}

/** @throws ApiError not_allowed for a contractor, and not_owner */
export function assertRole({ role }: Pick<Actor, 'role'>, roles: AllowedRoles): void {
  if (roles === 'any') return
  if (role === 'contractor') throw new ApiError('not_allowed')
  if (roles === 'owner' && role !== 'owner') throw new ApiError('not_owner')
}

/** What a limited key may not do without the level. */
function describeLevel(area: AccessArea, level: AccessLevel): string {
  if (area !== 'boxes') return ''
  if (level === 'run') return ', needed to wake boxes, write files, and run commands, terminals and prompts'
  return level === 'write' ? ', needed to create, change, suspend or delete boxes' : ''
}

/**
 * @throws ApiError verification_required, unauthorized, not_allowed, not_owner, or key_access_denied with area and level,
 *   or with scope "boxes"
 */
export function assertAccess(actor: Actor, access: ActorAccess, host: 'control' | 'edge'): void {
  const { credential } = actor
  assertVerified(credential, access)
  assertCredential(credential, access, host)
  if (access.credential === 'none') return
  assertRole(actor, access.roles)
  if (access.credential === 'session') return
  const { area, level, orReadsHistory, scope } = access
  const readsHistory = orReadsHistory && rankLevel(actor.access, 'history') >= RANK.read
  if (area !== null && !readsHistory && rankLevel(actor.access, area) < RANK[level])
    throw new ApiError(
      'key_access_denied',
      `This API key lacks ${level} access to ${area}${orReadsHistory ? ', or read access to the history' : describeLevel(area, level)}. Use an API key with this access.`,
      { fields: { area, level } },
    )
  if (scope === 'workspace' && actor.boxIds !== null)
    throw new ApiError(
      'key_access_denied',
      'This API key is limited to some boxes and cannot be used for workspace-wide requests. Use an API key without this limit.',
      { fields: { scope: 'boxes' } },
    )
}

/** @param access null: the request is for an unknown route */
export function assertVerified(credential: Credential, access: Access | null): void {
  if (credential.type !== 'key' || !credential.isUnverified) return
  if (access?.credential === 'none' || (access?.credential === 'key' && access.acceptsUnverified)) return
  throw new ApiError('verification_required')
}
