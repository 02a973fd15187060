// The list of audit events, and its output as CSV.
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { AuditEvent } from '../../shared/api/audit.ts'
import type { Client } from '../connection/client.ts'
import { invalidDataError } from '../connection/server-data.ts'
import type { Session } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import type { ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { loadMemberNames } from '../members/member-names.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatLocalTime, formatTimestamp } from '../output/format.ts'
import { printStderr } from '../output/print.ts'
import {
  type AuditFilter,
  type FilterOptions,
  formatOtherActor,
  loadBoxNames,
  loadEvents,
  loadEventsAfter,
  toFilter,
} from './audit-query.ts'

export type AuditOptions = ListOptions &
  FilterOptions & { tail?: number; follow?: boolean; csv?: string | true }

const DEFAULT_COUNT = 50

type Names = { getUser(id: string): string; getBox(id: string): string }

/** @param kinds of --kind */
const createEventList = ({ getUser, getBox }: Names, kinds: readonly string[]): List<AuditEvent> => ({
  columns: [
    { header: 'ID', cell: ({ id }) => String(id) },
    { header: 'TIME', cell: ({ at }) => formatLocalTime(Date.parse(at)) },
    { header: 'KIND', cell: ({ kind }) => kind },
    {
      header: 'ACTOR',
      cell: (event) => (event.actorUserId === null ? formatOtherActor(event) : getUser(event.actorUserId)),
    },
    { header: 'BOX', cell: ({ boxId }) => (boxId === null ? '-' : getBox(boxId)) },
    { header: 'ORIGIN', cell: ({ origin }) => origin, isWide: true },
    { header: 'CREDENTIAL', cell: ({ actorTokenId }) => actorTokenId ?? '-', isWide: true },
    { header: 'DETAIL', cell: ({ detail }) => formatDetail(detail, { getUser, getBox }) },
  ],
  getId: ({ id }) => String(id),
  getName: ({ id }) => String(id),
  filters: {},
  getEmptyMessage: () =>
    kinds.includes('exec') || kinds.includes('prompt')
      ? 'No matching events. Commands and prompts are events only when a client reports them: `box history` and `box prompts` list them.'
      : 'No matching events.',
  isAppendOnly: true,
})

/**
 * With the names that ids stand for; without fields that have no value, and without ids of other objects when the detail has
 * their name. --json and --csv have all.
 */
function formatDetail(detail: AuditEvent['detail'], { getUser, getBox }: Names): string {
  const hasName = typeof detail.name === 'string'
  return Object.entries(detail)
    .filter(([name, value]) => value !== null && value !== '' && !isUnknownId(name, value, hasName))
    .map(([name, value]) => {
      if (name === 'userId') return `user=${getUser(String(value))}`
      if (name === 'boxIds') return `boxes=${String(value).split(/,\s*/).map(getBox).join(',')}`
      if (typeof value !== 'string') return `${name}=${JSON.stringify(value)}`
      return `${name}=${INSTANT.test(value) ? formatTimestamp(value) : value}`
    })
    .join(' ')
}

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
/** Of a session, and of an object whose name the detail has. */
const isUnknownId = (name: string, value: unknown, hasName: boolean): boolean =>
  name === 'sessionId' ||
  (hasName && name.endsWith('Id') && name !== 'userId' && /^[a-z]+_/.test(String(value)))

/** Returns the exit code. */
export async function showAudit(session: Session, options: AuditOptions): Promise<number> {
  const { client, signal } = session
  const filter = await toFilter(client, options, Date.now())
  if (options.csv !== undefined) return downloadCsv(session, filter, options.csv)
  const [getUser, getBox] = await Promise.all([loadMemberNames(client), loadBoxNames(client)])
  const list = createEventList({ getUser, getBox }, options.kind ?? [])
  const load = createLoader(client, filter, options)
  return printList(list, load, { ...options, watch: options.follow ?? false }, signal)
}

/** Oldest first. With --follow, each call after the first one returns the events since the previous call. */
function createLoader(client: Client, filter: AuditFilter, options: AuditOptions) {
  const { tail, follow, since, until } = options
  const hasTime = since !== undefined || until !== undefined
  const count = tail ?? (hasTime ? Number.POSITIVE_INFINITY : DEFAULT_COUNT)
  let last: number | null = null
  return async () => {
    const { events, nextBefore } =
      last === null
        ? await loadEvents(client, filter, count)
        : { events: await loadEventsAfter(client, filter, last), nextBefore: null }
    // Without a matching event, the newest event of all is where the next call starts.
    if (follow) last = events[0]?.id ?? last ?? (await loadNewestId(client))
    const toJson = (rows: readonly AuditEvent[]) => ({ events: rows, nextBefore })
    return { rows: events.reverse(), toJson }
  }
}

const loadNewestId = async (client: Client): Promise<number> =>
  (await loadEvents(client, { query: new URLSearchParams(), matches: null }, 1)).events[0]?.id ?? 0

async function downloadCsv(
  { client }: Session,
  { query, matches }: AuditFilter,
  file: string | true,
): Promise<number> {
  if (matches !== null)
    throw new CliError(EXIT.usage, '--csv needs a user as --actor: the coordinator writes the file.')
  query.set('format', 'csv')
  const { body } = await client.download(`/audit?${query}`)
  if (body === null) throw invalidDataError('no events')
  const isStdout = file === true || file === '-'
  try {
    if (isStdout) await pipeline(body, process.stdout, { end: false })
    // Only the user may read the log.
    else await pipeline(body, createWriteStream(file, { mode: 0o600 }))
  } catch (error) {
    throw new CliError(EXIT.failed, `Cannot write the events: ${(error as Error).message}.`, { cause: error })
  }
  if (!isStdout) printStderr(`${file}: written`)
  return EXIT.ok
}
