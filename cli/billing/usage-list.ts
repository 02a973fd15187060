// The list of what boxes have cost, by box, member or day.
import type { Usage, UsageGroup } from '../../shared/api/usage.ts'
import { formatDollars } from '../../shared/format-dollars.ts'
import type { Client } from '../connection/client.ts'
import type { Filters } from '../lists/filters.ts'
import type { Column, List, Loaded } from '../lists/list.ts'
import { formatWholeSeconds } from '../output/format.ts'

/** A row of the usage by any group. */
export type UsageRow = Usage['rows'][number]

/** The name of the box or member, or the day. */
function getName(row: UsageRow): string {
  if ('day' in row) return row.day
  if ('boxId' in row) return row.hostname ?? row.boxId
  return row.email ?? row.name ?? row.userId
}

function getId(row: UsageRow): string {
  if ('day' in row) return row.day
  return 'boxId' in row ? row.boxId : row.userId
}

export const USAGE_FILTERS: Filters<UsageRow> = { name: { get: getName } }

const HEADERS = { box: 'BOX', member: 'MEMBER', day: 'DAY' } as const

export function createUsageList(by: UsageGroup): List<UsageRow> {
  const id: Column<UsageRow>[] = by === 'day' ? [] : [{ header: 'ID', cell: getId, isWide: true }]
  return {
    columns: [
      { header: HEADERS[by], cell: getName },
      { header: 'COST', cell: ({ micros }) => formatDollars(micros) },
      { header: 'RUNNING', cell: ({ computeSeconds }) => formatWholeSeconds(computeSeconds) },
      ...id,
    ],
    getId,
    getName,
    filters: USAGE_FILTERS,
    getEmptyMessage: (isFiltered) => (isFiltered ? 'No matching usage.' : 'No usage in this month.'),
  }
}

type Query = { by: UsageGroup; month: string | undefined; hasNote: boolean }

export async function loadUsage(client: Client, { by, month, hasNote }: Query): Promise<Loaded<UsageRow>> {
  const query = new URLSearchParams({ by, ...(month === undefined ? {} : { month }) })
  const usage = await client.request<Usage>('GET', `/usage?${query}`)
  const total = `The total of ${usage.month} is ${formatDollars(usage.totalMicros)}.`
  return {
    rows: [...usage.rows],
    toJson: (rows) => ({ ...usage, rows }),
    note: hasNote && usage.rows.length > 0 ? total : null,
  }
}
