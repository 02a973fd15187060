// Describes a list of the command line: its columns, names and filters.
import type { Cell } from '../output/table.ts'
import type { Filters } from './filters.ts'

export type Column<Row> = {
  header: string
  cell(row: Row, now: number): Cell
  /** Shown only with -o wide. */
  isWide?: boolean
  /** Omitted with -o wide, where another column has the whole value. */
  isShort?: boolean
  /** Changes with time only, such as an age: not a change of the row for --watch. */
  isRelativeTime?: boolean
}

export type List<Row> = {
  /** The last column may be long: it is truncated at the width of the terminal, except with -o wide. */
  columns: readonly Column<Row>[]
  /** Identifies the row for --watch. */
  getId(row: Row): string
  /** Printed with --quiet and -o name. */
  getName(row: Row): string
  filters: Filters<Row>
  /** Printed on stderr when there are no rows. */
  getEmptyMessage(isFiltered: boolean): string
  /** The row that --watch prints for a row that is missing now; null prints nothing. Default: null. */
  toRemoved?(row: Row): Row | null
  /** Rows only appear, as in a log: --watch prints them instead of a table that is redrawn. */
  isAppendOnly?: boolean
}

export type Loaded<Row> = {
  rows: Row[]
  /** The JSON value for the rows that match the filters. */
  toJson(rows: readonly Row[]): unknown
  /** Printed on stderr, by --watch when it changes. */
  note?: string | null
}
