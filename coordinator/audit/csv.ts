// Formats events of the audit log as CSV (spec §4.12): RFC 4180, and safe to open in a spreadsheet.
import { type Options, stringify } from 'csv-stringify/sync'
import { toTimestamp } from '../../shared/clock.ts'
import type { AuditEventRow } from '../db/schema.ts'

const COLUMNS = [
  'id',
  'at',
  'kind',
  'origin',
  'actor_kind',
  'actor_user_id',
  'actor_token_id',
  'box_id',
  'detail',
] as const

/** `escape_formulas` prefixes cells that a spreadsheet would evaluate, such as those that start with =, with '. */
const OPTIONS: Options = {
  record_delimiter: 'windows',
  // With this option, cells that contain only one of the two characters are quoted too.
  quote_record_delimiter: true,
  escape_formulas: true,
}

export const CSV_HEADER: string = stringify([[...COLUMNS]], OPTIONS)

export const formatCsv = (rows: readonly AuditEventRow[]): string =>
  stringify(
    rows.map((row) => [
      row.no,
      toTimestamp(row.at),
      row.kind,
      row.origin,
      row.actor_kind,
      row.actor_user_id,
      row.actor_token_id,
      row.box_id,
      row.detail ?? '{}',
    ]),
    OPTIONS,
  )

/** audit-YYYYMMDD-HHMMSS.csv, in UTC. */
export function createCsvFileName(now: number): string {
  const [date = '', time = ''] = toTimestamp(now).replaceAll(/[-:]/g, '').split(/[T.]/)
  return `audit-${date}-${time}.csv`
}
