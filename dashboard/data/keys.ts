// The forms of API keys: their limits as the API and the box command have them.
import type { ApiKey, CreateKeyRequest } from '../../shared/api/keys.ts'

export type KeyLimits = Pick<CreateKeyRequest, 'access' | 'boxIds'>
type Levels = NonNullable<ApiKey['access']>
type Area = keyof Levels

/** The levels of each area, as in shared/field-values.ts. */
export const AREA_LEVELS: Record<Area, readonly string[]> = {
  boxes: ['none', 'read', 'run', 'write'],
  workspace: ['none', 'read', 'write'],
  history: ['none', 'read'],
}
export const AREAS = Object.keys(AREA_LEVELS) as Area[]

/** Without a level in any area, the key is not limited. The fields with the levels have the names of the areas. */
export function parseAccess(values: Record<string, string>): Levels | null {
  const entries = AREAS.map((area) => [area, values[area] || 'none'] as const)
  if (entries.every(([, level]) => level === 'none')) return null
  return Object.fromEntries(entries.filter(([, level]) => level !== 'none')) as Levels
}

export const formatAccess = (access: Levels | null): string =>
  access === null
    ? 'all actions'
    : AREAS.flatMap((area) => {
        const level = access[area]
        return level === undefined || level === 'none' ? [] : [`${area}=${level}`]
      }).join(', ')

/** The words of `box keys create` and `box keys set` for the limits. @param boxNames of the chosen boxes */
export function listLimitWords(
  access: Levels | null,
  boxNames: readonly string[],
  isChange: boolean,
): string[] {
  const levels = access === null ? (isChange ? 'all' : null) : formatAccess(access).replaceAll(', ', ',')
  return [
    ...(levels === null ? [] : ['--access', levels]),
    ...boxNames.flatMap((name) => ['--box', name]),
    ...(isChange && boxNames.length === 0 ? ['--all-boxes'] : []),
  ]
}

/** Last used first. */
export const sortKeys = (keys: readonly ApiKey[]): ApiKey[] =>
  keys.toSorted((a, b) => (b.lastUsedAt ?? b.createdAt).localeCompare(a.lastUsedAt ?? a.createdAt))
