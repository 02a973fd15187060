// What a limited key may not do (spec §5.8 and §5.9). Which boxes it reaches is the resources' own business.
import { ApiError } from '../../shared/errors.ts'
import type { Actor } from './actor.ts'
import type { Method, RouteAccess } from './route.ts'

const RANK = { none: 0, read: 1, write: 2 } as const

type Guarded = { method: Method; access?: RouteAccess | null; workspaceWide?: boolean }

export const requiredAccess = ({ method, access }: Guarded): RouteAccess | null =>
  access === undefined ? { area: 'boxes', level: method === 'GET' ? 'read' : 'write' } : access

/** Throws key_access_denied with area and level, or with scope "boxes". */
export function assertAccess(actor: Actor, route: Guarded): void {
  const needed = requiredAccess(route)
  if (needed !== null && actor.access !== null) {
    const { area, level } = needed
    const granted = actor.access[area] ?? 'none'
    if (RANK[granted] < RANK[level])
      throw new ApiError('key_access_denied', `This API key lacks ${level} access to ${area}.`, {
        fields: { area, level },
      })
  }
  if (route.workspaceWide && actor.boxIds !== null)
    throw new ApiError(
      'key_access_denied',
      'This API key is limited to some boxes and does not cover the workspace as a whole.',
      { fields: { scope: 'boxes' } },
    )
}
