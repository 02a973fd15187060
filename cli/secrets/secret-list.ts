// The lists of secrets and of their uses.
import type { Secret, SecretGrant, SecretUse } from '../../shared/api/secrets.ts'
import type { List } from '../lists/list.ts'
import { formatAge } from '../output/format.ts'
import { formatLocations } from './locations.ts'

const SCOPES: Secret['scope'][] = ['workspace', 'granted']

/** The box, or the owner of the boxes. */
export const getGrantee = ({ hostname, boxId, email, userId, id }: SecretGrant): string =>
  hostname ?? email ?? boxId ?? userId ?? id

/** More grants are counted. */
const MAX_GRANTS = 3

export function formatGrants({ scope, grants }: Pick<Secret, 'scope' | 'grants'>): string {
  if (scope === 'workspace') return 'workspace'
  const shown = grants.slice(0, grants.length > MAX_GRANTS + 1 ? MAX_GRANTS : grants.length).map(getGrantee)
  const rest = grants.length - shown.length
  return `${shown.join(', ')}${rest === 0 ? '' : ` and ${rest} more`}`
}

/** The text for a secret without hosts. */
export const formatHosts = (hosts: readonly string[]): string =>
  hosts.length === 0 ? 'none: used nowhere' : hosts.join(', ')

const getValueTime = ({ lastRotatedAt, createdAt }: Secret): string => lastRotatedAt ?? createdAt

export const SECRETS: List<Secret> = {
  columns: [
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'BOXES', cell: formatGrants },
    { header: 'MOUNTS', cell: ({ mountCount }) => String(mountCount) },
    {
      header: 'VALUE SET',
      cell: (secret, now) => `${formatAge(getValueTime(secret), now)} ago`,
      isRelativeTime: true,
    },
    { header: 'PLACEHOLDER', cell: ({ placeholder }) => placeholder, isWide: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
    { header: 'DESCRIPTION', cell: ({ description }) => description ?? '-', isWide: true },
    { header: 'IN', cell: ({ in: locations }) => formatLocations(locations) },
    { header: 'HOSTS', cell: ({ hosts }) => formatHosts(hosts) },
  ],
  getId: ({ id }) => id,
  getName: ({ name }) => name,
  filters: {
    name: { get: ({ name }) => name },
    host: { get: ({ hosts }) => hosts.join(' ') },
    in: { get: ({ in: locations }) => locations.join(' ') },
    scope: { get: ({ scope }) => scope, values: SCOPES },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching secrets.' : 'No secrets. `box secrets set NAME` creates one.',
}

export const USES: List<SecretUse> = {
  columns: [
    { header: 'BOX', cell: ({ hostname, boxId }) => hostname ?? `${boxId} (deleted)` },
    { header: 'HOST', cell: ({ host }) => host },
    { header: 'REQUESTS', cell: ({ count }) => String(count) },
    { header: 'FIRST', cell: ({ firstAt }, now) => `${formatAge(firstAt, now)} ago`, isRelativeTime: true },
    { header: 'LAST', cell: ({ lastAt }, now) => `${formatAge(lastAt, now)} ago`, isRelativeTime: true },
    { header: 'BOX ID', cell: ({ boxId }) => boxId, isWide: true },
  ],
  getId: ({ boxId, host }) => `${boxId} ${host}`,
  getName: ({ host }) => host,
  filters: {
    box: { get: ({ hostname, boxId }) => hostname ?? boxId },
    host: { get: ({ host }) => host },
  },
  getEmptyMessage: (isFiltered) => (isFiltered ? 'No matching uses.' : 'No request has used the secret.'),
}
