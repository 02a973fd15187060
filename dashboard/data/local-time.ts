// Formats moments and durations. Moments are shown in the time zone of the browser, in the order of ISO 8601.

const pad = (value: number, length = 2): string => String(value).padStart(length, '0')

/** Such as 2026-01-31. */
export function formatLocalDate(ms: number): string {
  const date = new Date(ms)
  return `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`
}

/** Such as 03:14, or 03:14:15 with seconds. */
export function formatLocalClock(ms: number, hasSeconds = false): string {
  const date = new Date(ms)
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}`
  return hasSeconds ? `${clock}:${pad(date.getSeconds())}` : clock
}

/** Such as 2026-01-31 03:14:15. */
export const formatLocalTime = (ms: number): string => `${formatLocalDate(ms)} ${formatLocalClock(ms, true)}`

/** The zone of the browser at this moment, such as `Europe/Berlin, UTC+01:00`, or `UTC`. */
export function formatZone(ms: number): string {
  const minutes = -new Date(ms).getTimezoneOffset()
  const size = Math.abs(minutes)
  const offset = `UTC${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  return timeZone === 'UTC' ? timeZone : `${timeZone}, ${offset}`
}

/** Such as `2026-01-31 03:14 to 04:14`, with the second date if it is another one. */
export function formatLocalRange(from: number, to: number): string {
  const isShort = to - from < 600_000
  const end = formatLocalClock(to, isShort)
  const isOneDay = formatLocalDate(from) === formatLocalDate(to)
  return `${formatLocalDate(from)} ${formatLocalClock(from, isShort)} to ${isOneDay ? end : `${formatLocalDate(to)} ${end}`}`
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const

/** With at most two units, such as `350 ms`, `12.3 s`, `3 min 5 s`, `2 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 59_950) return `${Number((ms / 1000).toFixed(1))} s`
  const seconds = Math.round(ms / 1000)
  const index = UNITS.findIndex(([, size]) => seconds >= size)
  const [unit, size] = UNITS[index] ?? UNITS[2]
  const [nextUnit, nextSize] = UNITS[index + 1] ?? (['s', 1] as const)
  const rest = Math.floor((seconds % size) / nextSize)
  return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${nextUnit}` : ''}`
}
