// Loads the records that `box history` prints: one page, or all records that match the filters.
import type { CommandList, Command as CommandRecord } from '../../shared/api/commands.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Client } from '../connection/client.ts'
import type { FilterValues } from '../lists/filters.ts'
import { getPage, type PageQuery, readRecords } from './read-records.ts'

export type RecordQuery = { limit?: number; before?: string; all?: boolean; filter: FilterValues }

/** `hasMore`: more records match, but `nextBefore` is null, because they start inside a page. */
export type LoadedRecords = CommandList & { hasMore: boolean }

/** The coordinator filters by one mode and one status; `matches` filters by everything. */
export async function loadRecords(
  client: Client,
  boxId: string,
  { limit, before, all = false, filter }: RecordQuery,
  matches: (record: CommandRecord) => boolean,
): Promise<LoadedRecords> {
  const query: PageQuery = {
    ...getSingleValue(filter, 'mode'),
    ...getSingleValue(filter, 'status'),
    ...(before !== undefined && { before }),
  }
  const isServerFiltered = [...filter.keys()].every((key) => key in query)
  if (!all && isServerFiltered)
    return {
      ...(await getPage(client, boxId, { ...query, ...(limit !== undefined && { limit }) })),
      hasMore: false,
    }
  const max = all ? Number.POSITIVE_INFINITY : (limit ?? LIMITS.commandPage.default)
  const commands: CommandRecord[] = []
  for await (const record of readRecords(client, boxId, query)) {
    if (!matches(record)) continue
    if (commands.length === max) return { commands, nextBefore: null, hasMore: true }
    commands.push(record)
  }
  return { commands, nextBefore: null, hasMore: false }
}

function getSingleValue(filter: FilterValues, key: 'mode' | 'status'): PageQuery {
  const [value, ...others] = filter.get(key) ?? []
  return value === undefined || others.length > 0 ? {} : { [key]: value }
}
