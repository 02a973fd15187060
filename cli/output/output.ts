// Prints results on stdout and messages on stderr. Formats tables, times and sizes; quotes arguments for the shell.
import { shellQuote } from '../../shared/shell-quote.ts'
import { replaceCommandName } from '../command-name.ts'
import { type Color, colorize } from './colors.ts'

/** Replaces newlines, control and format characters: text from a box or a server must not control the terminal. */
export function sanitize(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => (character === '\n' ? ' ' : '\uFFFD'))
}

export const print = (line: string): void => void process.stdout.write(`${line}\n`)
export const printJson = (value: unknown): void => print(formatJson(value, 2))

/** JSON whose strings have no control and format characters: JSON itself permits most of them without an escape. */
export const formatJson = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
export const printStderr = (line: string): void => void process.stderr.write(`${line}\n`)
/** An error, a warning or a note on stderr, with the prefix `box: `. Quoted commands such as `box ls` get the typed name. */
export const printMessage = (text: string): void => printStderr(`box: ${replaceCommandName(text)}`)

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

/** Width in characters. Infinite when stdout is not a terminal, so that scripts get whole lines. */
export const getTerminalWidth = (): number =>
  process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY

function truncateLine(line: string, width: number): string {
  if (line.length <= width) return line
  // Code points, not UTF-16 units: an emoji must not be split.
  const characters = [...line]
  return characters.length <= width ? line : `${characters.slice(0, width - 1).join('')}…`
}

/** Unit and its length in seconds. */
const TIME_UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
] as const

/** The time since `timestamp` in the largest unit, such as 5m. Returns 0s if the clock of this machine is behind. */
export function formatAge(timestamp: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(timestamp)) / 1000))
  for (const [unit, length] of TIME_UNITS)
    if (seconds >= length) return `${Math.floor(seconds / length)}${unit}`
  return `${seconds}s`
}

/** One decimal below 10 s, such as 1.5s; else at most two units, such as 1m 5s. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000
  if (seconds < 10) return `${seconds.toFixed(1)}s`
  let remaining = Math.floor(seconds)
  const units: string[] = []
  for (const [unit, length] of [...TIME_UNITS, ['s', 1] as const]) {
    const count = Math.floor(remaining / length)
    remaining -= count * length
    if (count > 0 || units.length > 0) units.push(`${count}${unit}`)
  }
  return units.slice(0, 2).join(' ')
}

/** Formats a setting as formatDuration does, without a second unit that is 0: 2h in place of 2h 0m. */
export const formatSetting = (milliseconds: number): string =>
  formatDuration(milliseconds).replace(/ 0[a-z]$/, '')

/** Formats as formatDuration does, without a fraction. */
export const formatWholeSeconds = (seconds: number): string =>
  seconds < 10 ? `${seconds}s` : formatDuration(seconds * 1000)

/** Formats with three significant digits, such as 1.95 MiB; below 1000 bytes exactly. */
export function formatBytes(bytes: number): string {
  let value = bytes
  for (const unit of ['B', 'KiB', 'MiB']) {
    if (value < 1000) return `${unit === 'B' ? value : value.toPrecision(3)} ${unit}`
    value /= 1024
  }
  return `${value >= 1000 ? Math.round(value) : value.toPrecision(3)} GiB`
}

/** Local date and time, such as 2026-01-31 03:14:15. */
export function formatLocalTime(time: number): string {
  const date = new Date(time)
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(pad).join('-')
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(pad).join(':')}`
}

const pad = (value: number): string => String(value).padStart(2, '0')

/** A single argument is a shell command line and stays unchanged. Each of several arguments is quoted. */
export function toCommandLine(args: readonly string[]): string {
  const [first] = args
  return args.length === 1 && first !== undefined ? first : args.map(shellQuote).join(' ')
}
