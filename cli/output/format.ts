// Formats times, sizes and command lines.
import { shellQuote } from '../../shared/shell-quote.ts'

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

/** Formats as formatLocalTime does. */
export const formatTimestamp = (timestamp: string): string => formatLocalTime(Date.parse(timestamp))

const pad = (value: number): string => String(value).padStart(2, '0')

/** A single argument is a shell command line and stays unchanged. Each of several arguments is quoted. */
export function toCommandLine(args: readonly string[]): string {
  const [first] = args
  return args.length === 1 && first !== undefined ? first : args.map(shellQuote).join(' ')
}
