// Formats metrics as CSV (RFC 4180): a row per bucket, with the mean and the maximum of each series.
import type { Metrics, MetricsValues } from '../../shared/api/metrics.ts'
import { sanitize } from '../output/print.ts'

/** A missing value is an empty field. */
export function formatMetricsCsv({ buckets, series, fs, ifaces }: Metrics): string {
  const columns = [
    ...listColumns('', series),
    ...fs.flatMap(({ mount, ...group }) => listColumns(`fs[${mount}].`, group)),
    ...ifaces.flatMap(({ name, ...group }) => listColumns(`iface[${name}].`, group)),
  ]
  const header = ['time', ...columns.map(({ name }) => name)]
  const rows = buckets.map((start, index) => [
    new Date(start * 1000).toISOString(),
    ...columns.map(({ values }) => String(values[index] ?? '')),
  ])
  return [header, ...rows].map((row) => `${row.map(formatField).join(',')}\r\n`).join('')
}

const listColumns = (prefix: string, group: Record<string, MetricsValues>) =>
  Object.entries(group).flatMap(([name, { avg, max }]) => [
    { name: `${prefix}${name}`, values: avg },
    { name: `${prefix}${name}_max`, values: max },
  ])

function formatField(text: string): string {
  const field = sanitize(text)
  return /[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}
