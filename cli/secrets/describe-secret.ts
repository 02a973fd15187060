// The details of a secret as text, without its value.
import type { Secret } from '../../shared/api/secrets.ts'
import { formatAge, formatTimestamp } from '../output/format.ts'
import { type Cell, formatTable } from '../output/table.ts'
import { formatLocations } from './locations.ts'
import { formatHosts, getGrantee } from './secret-list.ts'

/** Where the value is used, such as `used in requests to api.openai.com`. */
export function describeUse({
  hosts,
  in: locations,
}: Pick<Secret, 'hosts'> & Partial<Pick<Secret, 'in'>>): string {
  if (hosts.length === 0) return 'it has no hosts, so its value is used nowhere'
  const isDefault = locations === undefined || formatLocations(locations) === 'header'
  return `used in ${isDefault ? '' : `${formatLocations(locations)} of `}requests to ${hosts.join(', ')}`
}

export const describeScope = ({ scope, grants }: Pick<Secret, 'scope' | 'grants'>): string =>
  scope === 'workspace'
    ? 'all boxes of the workspace that are not restricted may mount it'
    : grants.length === 0
      ? 'no box may mount it, because it has no grants'
      : `only ${grants.map(describeGrant).join(', ')} may mount it`

const describeGrant = (grant: Secret['grants'][number]): string =>
  grant.boxId === null ? `boxes of ${getGrantee(grant)}` : getGrantee(grant)

export function formatSecret(secret: Secret, now: number): string {
  const rows: [string, Cell][] = [
    ['name', secret.name],
    ['id', secret.id],
    ...(secret.description === null ? [] : ([['description', secret.description]] as [string, Cell][])),
    ['hosts', formatHosts(secret.hosts)],
    ['in', formatLocations(secret.in)],
    ['placeholder', secret.placeholder],
    [
      'boxes',
      secret.scope === 'workspace'
        ? 'all that are not restricted'
        : secret.grants.map(describeGrant).join(', ') || 'none',
    ],
    ['mounts', String(secret.mountCount)],
    ['created', `${formatTimestamp(secret.createdAt)} (${formatAge(secret.createdAt, now)} ago)`],
    [
      'rotated',
      secret.lastRotatedAt === null
        ? 'never'
        : `${formatTimestamp(secret.lastRotatedAt)} (${formatAge(secret.lastRotatedAt, now)} ago)`,
    ],
  ]
  return formatTable(rows)
}
