// Formats the rows of a list as a table, or as names.
import { sanitize } from '../output/print.ts'
import { formatTable, getTerminalWidth } from '../output/table.ts'
import type { Column, List } from './list.ts'
import type { Format } from './options.ts'

export type TextFormat = Exclude<Format, 'json'>

/** The lines of the header and of each row. Without rows, no lines. */
export type FormattedRows = { header: string[]; lines: string[] }

export function formatRows<Row>(
  list: List<Row>,
  rows: readonly Row[],
  { format, now, showHeader }: { format: TextFormat; now: number; showHeader: boolean },
): FormattedRows {
  if (rows.length === 0) return { header: [], lines: [] }
  if (format === 'name') return { header: [], lines: rows.map((row) => sanitize(list.getName(row))) }
  const columns = list.columns.filter(({ isWide, isShort }) => !(format === 'wide' ? isShort : isWide))
  const table = [
    ...(showHeader ? [columns.map(({ header }) => header)] : []),
    ...rows.map((row) => columns.map(({ cell }) => cell(row, now))),
  ]
  const width = format === 'wide' ? Number.POSITIVE_INFINITY : getTerminalWidth()
  const lines = formatTable(table, width).split('\n')
  const header = lines.splice(0, showHeader ? 1 : 0)
  return { header, lines }
}

/** Equal for two versions of a row that differ in relative times only. */
export const getFingerprint = <Row>({ columns }: List<Row>, row: Row): string =>
  JSON.stringify(columns.filter(isContent).map(({ cell }) => cell(row, 0)))

const isContent = <Row>({ isRelativeTime = false }: Column<Row>): boolean => !isRelativeTime
