// The list of shared ports.
import type { PortAudience, PortShare } from '../../shared/api/port-shares.ts'
import type { List } from '../lists/list.ts'
import { formatAge } from '../output/format.ts'
import { formatExpiry, getAddress } from './describe-share.ts'

const AUDIENCES: PortAudience[] = ['members', 'anyone', 'public']

function formatOpened({ openCount, lastOpenedAt }: PortShare, now: number): string {
  if (openCount === 0) return 'never'
  const times = openCount === 1 ? 'once' : `${openCount} times`
  return lastOpenedAt === null ? times : `${times}, ${formatAge(lastOpenedAt, now)} ago`
}

export const SHARES: List<PortShare> = {
  columns: [
    { header: 'NAME', cell: ({ hostname }) => hostname },
    { header: 'PORT', cell: ({ port }) => String(port) },
    { header: 'ACCESS', cell: ({ access }) => access },
    { header: 'URL', cell: getAddress },
    { header: 'EXPIRES', cell: ({ expiresAt }, now) => formatExpiry(expiresAt, now), isRelativeTime: true },
    { header: 'OPENED', cell: formatOpened, isRelativeTime: true },
    { header: 'HOST', cell: ({ rewriteHost }) => (rewriteHost ? 'localhost' : 'link'), isWide: true },
    { header: 'CREATED', cell: ({ createdAt }) => createdAt, isWide: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: {
    box: { get: ({ hostname }) => hostname },
    port: { get: ({ port }) => String(port) },
    access: { get: ({ access }) => access, values: AUDIENCES },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching links.' : 'No ports are shared. `box share NAME PORT` shares a port.',
}
