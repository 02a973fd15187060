// Sparklines: a value per column as a bar of eight heights. A gap is a space.

const BARS = { unicode: '▁▂▃▄▅▆▇█', ascii: '_.,-~+*#' }

/** `max` is the value of the highest bar; higher values get the same bar. */
export function formatSparkline(
  values: readonly (number | null)[],
  { max, isUnicode }: { max: number; isUnicode: boolean },
): string {
  const bars = isUnicode ? BARS.unicode : BARS.ascii
  const getBar = (value: number) =>
    bars[Math.min(bars.length - 1, Math.floor((Math.max(0, value) / (max || 1)) * bars.length))]
  return values.map((value) => (value === null ? ' ' : getBar(value))).join('')
}

/** The mean of the values in each of `columns` ranges of equal length. null: no values in the range. */
export function averageColumns(values: readonly (number | null)[], columns: number): (number | null)[] {
  const getStart = (column: number) => getColumnStart(column, columns, values.length)
  return Array.from({ length: columns }, (_, column) =>
    getMean(values.slice(getStart(column), getStart(column + 1)).filter((value) => value !== null)),
  )
}

/** The first bucket of a column. */
export const getColumnStart = (column: number, columns: number, buckets: number): number =>
  Math.floor((column * buckets) / columns)

/** null: no values. */
export const getMean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
