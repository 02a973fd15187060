// Formats tables that fit the terminal.
import { type Color, colorize } from './colors.ts'
import { sanitize } from './print.ts'

/** The last column is not truncated below this number of characters, even on a narrow terminal. */
const MIN_LAST_COLUMN_WIDTH = 20

/** The text of a table cell. A colour applies to the text, not to the padding. */
export type Cell = string | { text: string; color: Color | null }

/**
 * Formats left-aligned columns, two spaces apart, without trailing spaces. Lines longer than `width` are truncated, but
 * the last column keeps at least MIN_LAST_COLUMN_WIDTH characters.
 */
export function formatTable(rows: readonly (readonly Cell[])[], width = Number.POSITIVE_INFINITY): string {
  const cells = rows.map((row) => row.map(parseCell))
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.text.length ?? 0)),
  )
  const minWidth = widths.slice(0, -1).reduce((sum, column) => sum + column + 2, MIN_LAST_COLUMN_WIDTH)
  return cells
    .map((row) => {
      const line = row.map(({ text }, column) => text.padEnd(widths[column] ?? 0)).join('  ')
      return colorizeCells(truncateLine(line.trimEnd(), Math.max(width, minWidth)), row, widths)
    })
    .join('\n')
}

function parseCell(cell: Cell): { text: string; color: Color | null } {
  const { text, color } = typeof cell === 'string' ? { text: cell, color: null } : cell
  return { text: sanitize(text), color }
}

/** Colours the cells in a formatted line, whose end may be truncated. */
function colorizeCells(
  line: string,
  row: readonly { text: string; color: Color | null }[],
  widths: readonly number[],
): string {
  let start = 0
  let result = ''
  for (const [column, { text, color }] of row.entries()) {
    const end = start + (widths[column] ?? 0) + 2
    const shown = line.slice(start, start + text.length)
    result += colorize(shown, shown === '' ? null : color) + line.slice(start + text.length, end)
    start = end
  }
  return result
}

/** Width in characters. Infinite when stdout is not a terminal, so that scripts get whole lines, and for one of unknown width. */
export const getTerminalWidth = (): number =>
  (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY

function truncateLine(line: string, width: number): string {
  if (line.length <= width) return line
  // Code points, not UTF-16 units: an emoji must not be split.
  const characters = [...line]
  return characters.length <= width ? line : `${characters.slice(0, width - 1).join('')}…`
}
