// Enforces the access levels of limited keys (spec §5.8, §5.9). Which boxes a key covers is checked by each resource.
import { ApiError } from '../../shared/errors.ts'
import type { Actor } from './actor.ts'
import type { Method, RouteAccess } from './route.ts'

const RANK = { none: 0, read: 1, write: 2 } as const

type AccessRequirements = { method: Method; access?: RouteAccess | null; workspaceWide?: boolean }

export const getRequiredAccess = ({ method, access }: AccessRequirements): RouteAccess | null =>
  access === undefined ? { area: 'boxes', level: method === 'GET' ? 'read' : 'write' } : access

/** Throws key_access_denied with area and level, or with scope "boxes". */
export function assertAccess(actor: Actor, route: AccessRequirements): void {
  const required = getRequiredAccess(route)
  if (required !== null && actor.access !== null) {
    const { area, level } = required
    const granted = actor.access[area] ?? 'none'
    if (RANK[granted] < RANK[level])
      throw new ApiError(
        'key_access_denied',
        `This API key lacks ${level} access to ${area}. Use an API key with this access.`,
        { fields: { area, level } },
      )
  }
  if (route.workspaceWide && actor.boxIds !== null)
    throw new ApiError(
      'key_access_denied',
      'This API key is limited to some boxes and cannot be used for workspace-wide requests. Use an API key without this limit.',
      { fields: { scope: 'boxes' } },
    )
}
