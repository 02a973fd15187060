// Decides which links are served, and which an actor may create (spec §4.5, §5.11, §7.1). Pure functions.
import type { Policy } from '../../shared/api/policies.ts'
import type { PortAudience } from '../../shared/api/port-shares.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Actor } from '../http/actor.ts'

/** BOXWOOD_SHARES and BOXWOOD_SHARE_LINKS. */
export type ShareSwitches = { shares: boolean; shareLinks: boolean }

export type ShareFacts = {
  switches: ShareSwitches
  policy: Pick<Policy, 'shareLinks' | 'anyoneLinksOwnerOnly'>
  /** Whether the box is restricted. false also where the facts are not those of one box. */
  isRestricted: boolean
}

/** A link that needs no membership. It expires, and counts towards the limit of the workspace. */
export const isOpenLink = (access: PortAudience): boolean => access !== 'members'

export const isLive = (
  { ended_at, expires_at }: { ended_at: number | null; expires_at: number | null },
  now: number,
): boolean => ended_at === null && (expires_at === null || expires_at > now)

/** Returns why links of the audience are not served, independent of their creator; null: they are served. */
export const getServingRefusal = (
  access: PortAudience,
  { switches, policy, isRestricted }: ShareFacts,
): ApiError | null =>
  refuseByDeployment(access, switches) ??
  (isOpenLink(access) ? (refuseByShareLinks(policy) ?? refuseByRestriction(isRestricted)) : null)

/** Returns why the actor may not have a link of the audience, apart from the limit; null: the actor may. */
export const getAccessRefusal = (
  access: PortAudience,
  actor: Actor,
  { switches, policy, isRestricted }: ShareFacts,
): ApiError | null =>
  refuseByDeployment(access, switches) ??
  (isOpenLink(access)
    ? (refuseByRole(access, actor) ??
      refuseByShareLinks(policy) ??
      refuseByOwnerPolicy(access, actor, policy) ??
      refuseByRestriction(isRestricted))
    : null)

/** @param links the other live links of the workspace that need no membership */
export const getLimitRefusal = (access: PortAudience, links: number): ApiError | null =>
  isOpenLink(access) && links >= LIMITS.shareLinks ? new ApiError('share_link_limit') : null

function refuseByDeployment(access: PortAudience, { shares, shareLinks }: ShareSwitches): ApiError | null {
  if (!isOpenLink(access)) return shares ? null : new ApiError('port_share_disabled')
  return shares && shareLinks ? null : new ApiError('share_links_disabled')
}

function refuseByRole(access: PortAudience, { role, userId }: Actor): ApiError | null {
  if (role === 'contractor')
    return new ApiError(
      'not_allowed',
      'A contractor may share ports only with members of the workspace. Ask an owner or a member for this link.',
    )
  if (access !== 'public' || (role === 'owner' && userId !== null)) return null
  return new ApiError(
    'not_allowed',
    'Only an owner of the workspace may create public links. Ask an owner, or create a link with access anyone.',
  )
}

const refuseByShareLinks = ({ shareLinks }: ShareFacts['policy']): ApiError | null =>
  shareLinks ? null : new ApiError('share_links_blocked')

const refuseByRestriction = (isRestricted: boolean): ApiError | null =>
  isRestricted
    ? new ApiError(
        'box_restricted',
        'The box is restricted: its ports are shared only with members of the workspace. Create a link with access members.',
      )
    : null

function refuseByOwnerPolicy(
  access: PortAudience,
  { role }: Actor,
  { anyoneLinksOwnerOnly }: ShareFacts['policy'],
): ApiError | null {
  if (access !== 'anyone' || role === 'owner' || !anyoneLinksOwnerOnly) return null
  return new ApiError(
    'policy_denied',
    'Only owners may create links for anyone in this workspace. Ask an owner, or for a change of the policy anyoneLinksOwnerOnly.',
    { fields: { rule: 'anyoneLinksOwnerOnly' } },
  )
}
