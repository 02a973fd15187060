// Formats the metrics of a box: a row for each series with its figures and a sparkline, above a time axis.
import type { Metrics } from '../../shared/api/metrics.ts'
import { colorize } from '../output/colors.ts'
import { formatDuration, formatLocalTime } from '../output/format.ts'
import { sanitize } from '../output/print.ts'
import { formatTable } from '../output/table.ts'
import { hasValue, listSeries, type ShownSeries } from './series.ts'
import { averageColumns, formatSparkline, getColumnStart, getMean } from './sparkline.ts'
import { formatTimeAxis } from './time-axis.ts'

type Layout = { width: number; isUnicode: boolean }

/** On a narrow terminal, figures are omitted before the sparkline gets shorter than this. */
const MIN_SPARKLINE_WIDTH = 20
const SHOWN_GAPS = 3

type FigureName = 'LAST' | 'MEAN' | 'MAX' | 'LIMIT'
/** The first set that leaves enough space for the sparklines is shown. */
const FIGURE_SETS: FigureName[][] = [
  ['LAST', 'MEAN', 'MAX', 'LIMIT'],
  ['LAST', 'MEAN', 'MAX'],
  ['LAST', 'MAX'],
  ['LAST'],
  [],
]

export function formatMetrics(boxName: string, metrics: Metrics, { width, isUnicode }: Layout): string {
  const { buckets, res } = metrics
  const all = listSeries(metrics)
  const shown = all.filter(({ values }) => hasValue(values))
  const [from, to] = [Date.parse(metrics.from), Date.parse(metrics.to)]
  const heading = `${sanitize(boxName)}: ${formatLocalTime(from)} to ${formatLocalTime(to)} (${formatSpan(to - from)}), a value per ${formatSpan(res * 1000)}`
  if (buckets.length === 0) return 'The time span is not within the last 30 days, for which samples are kept.'
  if (shown.length === 0)
    return `${heading}\n\nNo samples. A box takes a sample every 30 seconds while it is running.`
  const { rows, sparklineWidth } = layOut(shown, width)
  const columns = Math.max(1, Math.min(sparklineWidth, buckets.length))
  const sparklines = shown.map(({ values, scale, limit }) => {
    const averages = averageColumns(values.avg, columns)
    const max = scale ?? getMax(limit?.values.avg ?? []) ?? getMax(averages) ?? 1
    return formatSparkline(averages, { max, isUnicode })
  })
  const [header = '', ...lines] = rows
  const times = Array.from(
    { length: columns },
    (_, column) => (buckets[getColumnStart(column, columns, buckets.length)] ?? 0) * 1000,
  )
  const axis = formatTimeAxis(times, isUnicode).map((line) =>
    colorize(`${' '.repeat(header.length)}${line}`, 'gray'),
  )
  return [
    heading,
    '',
    header.trimEnd(),
    ...lines.map((line, index) =>
      `${line}${colorize((sparklines[index] ?? '').trimEnd(), 'cyan')}`.trimEnd(),
    ),
    ...axis,
    '',
    ...formatNotes(metrics, all),
  ]
    .join('\n')
    .trimEnd()
}

/** The header and the lines before the sparklines, all of the same length. */
function layOut(shown: readonly ShownSeries[], width: number): { rows: string[]; sparklineWidth: number } {
  for (const names of FIGURE_SETS) {
    const rows = formatFigures(shown, names)
    const sparklineWidth = width - (rows[0]?.length ?? 0)
    if (sparklineWidth >= MIN_SPARKLINE_WIDTH || names.length === 0) return { rows, sparklineWidth }
  }
  return { rows: [], sparklineWidth: width }
}

function formatFigures(shown: readonly ShownSeries[], names: readonly FigureName[]): string[] {
  const figures = shown.map((series) => names.map((name) => formatFigure(series, name)))
  const widths = names.map((name, column) =>
    Math.max(name.length, ...figures.map((row) => row[column]?.length ?? 0)),
  )
  const table = [
    ['', ...names.map((name, column) => name.padStart(widths[column] ?? 0))],
    ...figures.map((row, index) => [
      shown[index]?.label ?? '',
      ...row.map((text, column) => text.padStart(widths[column] ?? 0)),
    ]),
  ]
  const lines = formatTable(table).split('\n')
  const length = Math.max(...lines.map((line) => line.length)) + 2
  return lines.map((line) => line.padEnd(length))
}

function formatFigure({ values, limit, format }: ShownSeries, name: FigureName): string {
  const known = values.avg.filter((value) => value !== null)
  const [value, formatValue] = {
    LAST: [known.at(-1) ?? null, format] as const,
    MEAN: [getMean(known), format] as const,
    MAX: [getMax(values.max), format] as const,
    LIMIT: [limit?.values.avg.findLast((value) => value !== null) ?? null, limit?.format ?? format] as const,
  }[name]
  if (value === null) return name === 'LIMIT' ? '' : '-'
  return formatValue(value)
}

/** null: no values. */
function getMax(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : known.reduce((a, b) => Math.max(a, b))
}

/** Which series are not measured for this box, and when there are no samples. */
function formatNotes(metrics: Metrics, all: readonly ShownSeries[]): string[] {
  const missing = all.filter(({ values }) => !hasValue(values)).map(({ label }) => sanitize(label))
  if (metrics.ifaces.length === 0) missing.push('network')
  const gaps = findGaps(metrics)
  const formatGap = ([from, to]: readonly [number, number]) =>
    `${formatLocalTime(from * 1000)} to ${formatLocalTime(to * 1000)} (${formatSpan((to - from) * 1000)})`
  const others = gaps.length > SHOWN_GAPS ? ` and ${gaps.length - SHOWN_GAPS} more` : ''
  return [
    ...(gaps.length > 0
      ? [`No samples from ${gaps.slice(0, SHOWN_GAPS).map(formatGap).join(', ')}${others}.`]
      : []),
    ...(missing.length > 0 ? [`Not measured for this box: ${missing.join(', ')}.`] : []),
  ]
}

/** Start and end of each range of buckets without a sample, in seconds, except an unfinished bucket at the end. */
function findGaps({ buckets, series, res }: Metrics): [number, number][] {
  const gaps: [number, number][] = []
  const boxSeries = Object.values(series)
  for (const [index, start] of buckets.entries()) {
    if (boxSeries.some(({ avg }) => typeof avg[index] === 'number')) continue
    const last = gaps.at(-1)
    if (last?.[1] === start) last[1] = start + res
    else gaps.push([start, start + res])
  }
  const end = (buckets.at(-1) ?? 0) + res
  return gaps.filter(([from, to]) => to < end || to - from > res)
}

const formatSpan = (milliseconds: number): string =>
  formatDuration(milliseconds)
    .replace(/ 0[a-z]$/, '')
    .replace(/\.0s$/, 's')
