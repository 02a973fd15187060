// The filters and the pages of the audit log.
import type { AuditEvent } from '../../shared/api/audit.ts'
import { formatCommandLine } from './command-line.ts'

export type AuditFilter = {
  /** Local times, such as 2026-01-31T09:30; empty: no limit. */
  since: string
  until: string
  /** Kinds, separated by commas. */
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

export const formatDetail = (detail: AuditEvent['detail']): string =>
  Object.entries(detail)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
