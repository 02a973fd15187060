// The forms of API keys: their limits as the API and the box command have them.
import type { ApiKey, CreateKeyRequest } from '../../shared/api/keys.ts'
import { formatCount } from './format-count.ts'

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

/** The areas and their levels in words. */
export const AREA_WORDS: Record<Area, { label: string; levels: Readonly<Record<string, string>> }> = {
  boxes: {
    label: 'Boxes',
    levels: { read: 'reads boxes', run: 'runs commands on boxes', write: 'changes boxes' },
  },
  workspace: {
    label: 'Workspace',
    levels: { read: 'reads the workspace', write: 'changes the workspace' },
  },
  history: { label: 'Command history', levels: { read: 'reads the command history' } },
}

/** More boxes are counted. */
const MAX_BOXES = 4

/**
 * What the key may do, in words.
 * @param key.userId null: no user
 * @param userId of the viewer
 */
export function listLimits(
  { userId: owner, access, boxIds }: Pick<ApiKey, 'userId' | 'access' | 'boxIds'>,
  userId: string | undefined,
  getBoxName: (id: string) => string,
): string[] {
  const actions =
    access === null
      ? [boxIds === null ? describeRole(owner, userId) : 'all actions']
      : AREAS.flatMap((area) => AREA_WORDS[area].levels[access[area] ?? 'none'] ?? [])
  const names = (boxIds ?? []).slice(0, MAX_BOXES).map((id) => `only ${getBoxName(id)}`)
  const hidden = (boxIds ?? []).length - MAX_BOXES
  return [
    ...actions,
    ...names,
    ...(hidden > 0 ? [`and ${formatCount(hidden, 'more box', 'more boxes')}`] : []),
  ]
}

function describeRole(owner: string | null, userId: string | undefined): string {
  if (owner === null) return 'everything that a member may do'
  return `everything that ${owner === userId ? 'your' : 'their'} role allows`
}

type Values = Readonly<Record<string, string>>

/** The value of the field `actions` with which the key has only the chosen levels. */
export const LIMITED = 'limited'

export const isLimited = ({ actions }: Values): boolean => actions === LIMITED

/** The fields with the levels have the names of the areas. Null: the key may do what its user may do. */
export const parseAccess = (values: Values): Levels | null => (isLimited(values) ? listLevels(values) : null)

const listLevels = (values: Values): Levels =>
  Object.fromEntries(
    AREAS.map((area) => [area, values[area] || 'none']).filter(([, level]) => level !== 'none'),
  ) as Levels

/** A limited key without a level in any area could do nothing. */
export const acceptsKey = (values: Values): boolean =>
  Boolean(values.name) && (!isLimited(values) || Object.keys(listLevels(values)).length > 0)

/** As `--access` has it. */
const formatAccess = (access: Levels): string =>
  AREAS.flatMap((area) => {
    const level = access[area]
    return level === undefined || level === 'none' ? [] : [`${area}=${level}`]
  }).join(',')

/** The words of `box keys create` and `box keys set` for the limits. @param boxNames of the chosen boxes */
export function listLimitWords(
  access: Levels | null,
  boxNames: readonly string[],
  isChange: boolean,
): string[] {
  // Without a level, the form is not complete, and neither is the command.
  const levels = access === null ? (isChange ? 'all' : '') : formatAccess(access) || 'AREA=LEVEL'
  return [
    ...(levels === '' ? [] : ['--access', levels]),
    ...boxNames.flatMap((name) => ['--box', name]),
    ...(isChange && boxNames.length === 0 ? ['--all-boxes'] : []),
  ]
}

/** Last used first. */
export const sortKeys = (keys: readonly ApiKey[]): ApiKey[] =>
  keys.toSorted((a, b) => (b.lastUsedAt ?? b.createdAt).localeCompare(a.lastUsedAt ?? a.createdAt))
