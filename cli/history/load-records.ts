// Loads the records that `box history` prints: one page, all records that match the filters, or those of several boxes.
import pLimit from 'p-limit'
import type { CommandList, Command as CommandRecord } from '../../shared/api/commands.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Client } from '../connection/client.ts'
import type { FilterValues } from '../lists/filters.ts'
import { getPage, type PageQuery, readRecords } from '../processes/read-records.ts'

export type RecordQuery = {
  limit?: number
  before?: string
  all?: boolean
  /** Milliseconds since the epoch: only commands that started at this time or later, and all of them without a limit. */
  since?: number
  filter: FilterValues
}

/** `hasMore`: more records match, but `nextBefore` is null, because they start inside a page. */
export type LoadedRecords = CommandList & { hasMore: boolean }

/** Records are sorted by the times of their requests. A command that waited for its box started later. */
const MAX_START_DELAY_MS = 10 * 60_000
/** Concurrent requests for the histories of several boxes. */
const CONCURRENCY = 8

/** The coordinator filters by one mode and one status; `matches` filters by everything. */
export async function loadRecords(
  client: Client,
  boxId: string,
  { limit, before, all = false, since, filter }: RecordQuery,
  matches: (record: CommandRecord) => boolean,
): Promise<LoadedRecords> {
  const query: PageQuery = {
    ...getSingleValue(filter, 'mode'),
    ...getSingleValue(filter, 'status'),
    ...(before !== undefined && { before }),
  }
  const isServerFiltered = since === undefined && [...filter.keys()].every((key) => key in query)
  if (!all && isServerFiltered)
    return {
      ...(await getPage(client, boxId, { ...query, ...(limit !== undefined && { limit }) })),
      hasMore: false,
    }
  const isUnlimited = all || (since !== undefined && limit === undefined)
  const max = isUnlimited ? Number.POSITIVE_INFINITY : (limit ?? LIMITS.commandPage.default)
  const commands: CommandRecord[] = []
  for await (const record of readRecords(client, boxId, query)) {
    const startedAt = Date.parse(record.startedAt)
    if (since !== undefined && startedAt < since - MAX_START_DELAY_MS) break
    if ((since !== undefined && startedAt < since) || !matches(record)) continue
    if (commands.length === max) return { commands, nextBefore: null, hasMore: true }
    commands.push(record)
  }
  return { commands, nextBefore: null, hasMore: false }
}

/** The newest records of the boxes. Sends at least one request for each box. */
export async function loadRecordsOfBoxes(
  client: Client,
  boxIds: readonly string[],
  query: Omit<RecordQuery, 'before' | 'all'>,
  matches: (record: CommandRecord) => boolean,
): Promise<LoadedRecords> {
  const atOnce = pLimit(CONCURRENCY)
  const lists = await Promise.all(
    boxIds.map((boxId) => atOnce(() => loadRecords(client, boxId, query, matches))),
  )
  const sorted = lists
    .flatMap(({ commands }) => commands)
    .sort((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt))
  const { limit = query.since === undefined ? LIMITS.commandPage.default : sorted.length } = query
  return {
    commands: sorted.slice(0, limit),
    nextBefore: null,
    hasMore: sorted.length > limit || lists.some(({ hasMore, nextBefore }) => hasMore || nextBefore !== null),
  }
}

function getSingleValue(filter: FilterValues, key: 'mode' | 'status'): PageQuery {
  const [value, ...others] = filter.get(key) ?? []
  return value === undefined || others.length > 0 ? {} : { [key]: value }
}
