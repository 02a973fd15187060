// The columns and filters of box snapshots and box templates.
import type { Snapshot } from '../../shared/api/snapshots.ts'
import { SNAPSHOT_KINDS, SNAPSHOT_STATUSES } from '../../shared/field-values.ts'
import { REGIONS } from '../../shared/tiers.ts'
import { boxCommand } from '../command-name.ts'
import type { Column, List } from '../lists/list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge, formatBytes } from '../output/format.ts'

/** The first characters identify a snapshot in a table. -o wide shows the whole id. */
const SHORT_ID_LENGTH = 'snp_'.length + 8

const column = (
  header: string,
  cell: Column<Snapshot>['cell'],
  options: Partial<Column<Snapshot>> = {},
): Column<Snapshot> => ({ header, cell, ...options })

const NAME = column('NAME', ({ name }) => name)
const TEMPLATE = column('TEMPLATE', ({ templateName }) => templateName ?? '-')
const ID = column('ID', ({ id }) => id.slice(0, SHORT_ID_LENGTH), { isShort: true })
const WIDE: Column<Snapshot>[] = [
  column('TIER', ({ tier }) => tier),
  column('REGION', ({ region }) => region),
  column('IMAGE', ({ image }) => image ?? '-'),
  column('PAUSED', ({ pausedMs }) => (pausedMs === null ? '-' : `${pausedMs} ms`)),
  column('EXPIRES', ({ expiresAt }) => expiresAt ?? '-'),
  column('CREATED', ({ createdAt }) => createdAt),
  column('ID', ({ id }) => id),
  column('DESCRIPTION', ({ error, description }) => error ?? description ?? '-'),
].map((wide) => ({ ...wide, isWide: true }))
const COMMON: Column<Snapshot>[] = [
  column('BOX', ({ sourceBoxHostname }) => sourceBoxHostname),
  column('KIND', ({ kind }) => kind),
  column('STATUS', ({ status }) => ({ text: status, color: getStateColor(status) })),
  column('SIZE', formatSize),
  column('AGE', ({ createdAt }, now) => formatAge(createdAt, now), { isRelativeTime: true }),
]

export const FILTERS: List<Snapshot>['filters'] = {
  name: { get: ({ name }) => name },
  box: { get: ({ sourceBoxHostname }) => sourceBoxHostname },
  template: { get: ({ templateName }) => templateName },
  status: { get: ({ status }) => status, values: SNAPSHOT_STATUSES },
  kind: { get: ({ kind }) => kind, values: SNAPSHOT_KINDS },
  region: { get: ({ region }) => region, values: REGIONS },
}

export const SNAPSHOTS: List<Snapshot> = {
  columns: [NAME, ...COMMON, { ...TEMPLATE, isWide: true }, ID, ...WIDE],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: FILTERS,
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching snapshots.' : `No snapshots. Take one with \`${boxCommand()} snapshot NAME\`.`,
}

export const TEMPLATES: List<Snapshot> = {
  ...SNAPSHOTS,
  columns: [TEMPLATE, ...COMMON, ID, { ...NAME, isWide: true }, ...WIDE],
  getName: ({ templateName, id }) => templateName ?? id,
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? 'No matching templates.'
      : `No templates. Make one with \`${boxCommand()} template NAME TEMPLATE\`.`,
}

export function formatSize({ sizeGb }: Snapshot): string {
  return sizeGb === null ? '-' : formatBytes(Math.round(sizeGb * 1e9))
}
