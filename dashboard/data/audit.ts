// The filters and the pages of the audit log.
import type { AuditEvent } from '../../shared/api/audit.ts'
import type { AuditKind } from '../../shared/audit-kinds.ts'
import type { AuditNames } from './audit-sentences.ts'
import { formatCommandLine } from './command-line.ts'
import { formatLocalDate } from './local-time.ts'

export type AuditFilter = {
  /** Local times, such as 2026-01-31T09:30; empty: no limit. */
  since: string
  until: string
  /** A kind, or several that are separated by commas. */
  kind: string
  /** The id of a box. */
  box: string
  /** The id of a user. */
  actor: string
  origin: string
}

export const NO_FILTER: AuditFilter = { since: '', until: '', kind: '', box: '', actor: '', origin: '' }
export const AUDIT_PAGE = 50

/** The parameters of GET /audit, without the page. */
export function toAuditQuery(filter: AuditFilter): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of ['since', 'until'] as const) {
    const time = Date.parse(filter[name])
    if (!Number.isNaN(time)) query.set(name, new Date(time).toISOString())
  }
  for (const name of ['kind', 'box', 'actor', 'origin'] as const) {
    const value = filter[name].replaceAll(' ', '')
    if (value !== '') query.set(name, value)
  }
  return query
}

/** @param before the id before which the page ends; null: the newest page */
export function toPageQuery(filter: AuditFilter, before: number | null): URLSearchParams {
  const query = toAuditQuery(filter)
  query.set('limit', String(AUDIT_PAGE))
  if (before !== null) query.set('before', String(before))
  return query
}

/** The address of the CSV file, relative to the base of the document. */
export function formatCsvPath(filter: AuditFilter): string {
  const query = toAuditQuery(filter)
  query.set('format', 'csv')
  return `api/v1/audit?${query}`
}

export const formatAuditCommand = (filter: AuditFilter): string =>
  formatCommandLine(
    'box',
    'audit',
    ...[...toAuditQuery(filter)].flatMap(([name, value]) => [`--${name}`, value]),
  )

/** The names of boxes in their own events, by id: the newest ones, also of deleted boxes. @param events newest first */
export function getNamesOfEvents(
  events: readonly Pick<AuditEvent, 'kind' | 'boxId' | 'detail'>[],
): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const { kind, boxId, detail } of events)
    if (boxId !== null && kind.startsWith('box.') && typeof detail.name === 'string' && !names.has(boxId))
      names.set(boxId, detail.name)
  return names
}

/** All kinds of the same object, such as those of keys, and each of them. */
export function groupKinds(kinds: readonly AuditKind[]): { object: string; kinds: AuditKind[] }[] {
  const groups = Object.groupBy(kinds, (kind) => kind.split('.')[0] ?? kind)
  return Object.entries(groups)
    .map(([object, members = []]) => ({ object: object.replaceAll('_', ' '), kinds: members }))
    .sort((a, b) => (a.object < b.object ? -1 : 1))
}

/**
 * The fields of a detail with their values, in which names stand for ids. Without ids of other objects when the detail has their
 * name, and without fields that have no value: `box audit --json` prints all.
 */
export function listDetails(
  detail: AuditEvent['detail'],
  names: AuditNames,
  formatTime: (ms: number) => string,
): [field: string, value: string][] {
  const hasName = typeof detail.name === 'string'
  const replaceId = (text: string) => names.users.get(text) ?? names.boxes.get(text) ?? text
  return Object.entries(detail)
    .filter(([name, value]) => value !== null && value !== '' && !isUnknownId(name, value, hasName))
    .map(([name, value]) => {
      const text = String(value)
      const shown = INSTANT.test(text)
        ? formatTime(Date.parse(text))
        : text.split(/,\s*/).map(replaceId).join(', ')
      return [toWords(name), shown]
    })
}

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
/** Of a session, and of an object whose name the detail has. */
const isUnknownId = (name: string, value: unknown, hasName: boolean): boolean =>
  name === 'sessionId' ||
  (hasName && name.endsWith('Id') && name !== 'userId' && /^[a-z]+_/.test(String(value)))
/** userId → User, amountUsd → Amount usd. */
function toWords(name: string): string {
  const words = name.replace(/Ids?$/, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The events of each day of the browser, newest first. @param events newest first */
export function groupByDay<Event extends Pick<AuditEvent, 'at'>>(
  events: readonly Event[],
): { day: string; events: Event[] }[] {
  const days: { day: string; events: Event[] }[] = []
  for (const event of events) {
    const day = formatLocalDate(Date.parse(event.at))
    const last = days.at(-1)
    if (last?.day === day) last.events.push(event)
    else days.push({ day, events: [event] })
  }
  return days
}

/** `Today`, `Yesterday`, or such as `Fri 2026-01-30`. @param day such as 2026-01-30 @param now milliseconds since the epoch */
export function formatDay(day: string, now: number): string {
  const today = new Date(now)
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1)
  if (day === formatLocalDate(now)) return 'Today'
  if (day === formatLocalDate(yesterday.getTime())) return 'Yesterday'
  const weekday = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: 'UTC' })
  return `${weekday.format(new Date(`${day}T00:00Z`))} ${day}`
}
