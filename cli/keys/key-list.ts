// The list of API keys.
import type { ApiKey } from '../../shared/api/keys.ts'
import type { List } from '../lists/list.ts'
import { formatAge } from '../output/format.ts'

/** Returns the name of a box by its id. */
export type GetBoxName = (id: string) => string

/** More boxes are counted. */
const MAX_NAMES = 3

/** Such as `boxes=run on fig, plum`. */
export function formatAccess(
  { access, boxIds }: Pick<ApiKey, 'access' | 'boxIds'>,
  getBoxName: GetBoxName,
): string {
  const levels = Object.entries(access ?? {})
    .filter(([, level]) => level !== 'none')
    .map(([area, level]) => `${area}=${level}`)
  const allowed = access === null ? 'all' : levels.join(',')
  if (boxIds === null) return allowed
  const names = boxIds.slice(0, boxIds.length > MAX_NAMES + 1 ? MAX_NAMES : boxIds.length).map(getBoxName)
  const rest = boxIds.length - names.length
  return `${allowed} on ${names.join(', ')}${rest === 0 ? '' : ` and ${rest} more`}`
}

export function formatExpiry({ expiresAt, revokedAt }: ApiKey, now: number): string {
  if (revokedAt !== null) return 'revoked'
  if (expiresAt === null) return 'never'
  const expiry = Date.parse(expiresAt)
  // Half a minute more: a key that was created for 30 days expires in 30d, not in 29d.
  return expiry <= now ? 'expired' : `in ${formatAge(new Date(now).toISOString(), expiry + 30_000)}`
}

/** @param getUserName of the id of a user; null: a key with no user */
export const createKeyList = (
  getUserName: (id: string | null) => string,
  getBoxName: GetBoxName,
): List<ApiKey> => ({
  columns: [
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'ID', cell: ({ id }) => id },
    { header: 'KIND', cell: ({ kind }) => kind },
    { header: 'USER', cell: ({ userId }) => getUserName(userId) },
    { header: 'ACCESS', cell: (key) => formatAccess(key, getBoxName) },
    { header: 'EXPIRES', cell: formatExpiry, isRelativeTime: true },
    {
      header: 'USED',
      cell: ({ lastUsedAt }, now) => (lastUsedAt === null ? 'never' : `${formatAge(lastUsedAt, now)} ago`),
      isRelativeTime: true,
    },
    { header: 'ENDS WITH', cell: ({ ending }) => ending ?? '-', isWide: true },
    { header: 'CREATED', cell: ({ createdAt }) => createdAt, isWide: true },
    { header: 'BOXES', cell: ({ boxIds }) => boxIds?.join(',') ?? '-', isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: {
    name: { get: ({ name }) => name },
    kind: { get: ({ kind }) => kind, values: ['api', 'machine'] },
    user: { get: ({ userId }) => getUserName(userId) },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching keys.' : 'No keys. `box keys create NAME` creates one.',
})
