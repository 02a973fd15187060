// The time axis below sparklines, in local time.

/** Columns between two labels. */
const GAP = 5
const DAY_MS = 86_400_000

/** Two lines: ticks, and the time at each tick. @param times of the start of each column, in milliseconds */
export function formatTimeAxis(times: readonly number[], isUnicode: boolean): string[] {
  const [first = 0] = times
  const span = (times.at(-1) ?? first) - first
  const format = (time: number) => formatLabel(new Date(time), span)
  const count = Math.max(1, Math.floor((times.length + GAP) / (format(first).length + GAP)))
  const columns = Array.from({ length: count }, (_, index) => Math.floor((index * times.length) / count))
  let ticks = ''
  let labels = ''
  for (const column of columns) {
    ticks = `${ticks.padEnd(column, isUnicode ? '─' : '-')}${isUnicode ? '┬' : '+'}`
    labels = labels.padEnd(column) + format(times[column] ?? first)
  }
  return [ticks.padEnd(times.length, isUnicode ? '─' : '-'), labels]
}

function formatLabel(date: Date, span: number): string {
  const time = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  const day = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
  if (span <= DAY_MS) return time
  return span <= 7 * DAY_MS ? `${day} ${time}` : day
}
