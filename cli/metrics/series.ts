// The series of a metrics response: their labels, units and limits.
import type {
  BoxSeriesName,
  FileSystemSeriesName,
  InterfaceSeriesName,
  Metrics,
  MetricsValues,
} from '../../shared/api/metrics.ts'
import { formatBytes } from '../output/format.ts'

export type ShownSeries = {
  label: string
  values: MetricsValues
  format(value: number): string
  /** The values of the limit in each bucket; null: no limit. */
  limit: { values: MetricsValues; format(value: number): string } | null
  /** The value of the highest bar; null: the largest value. */
  scale: number | null
}

type Style<Name extends string> = {
  name: Name
  label: string
  format(value: number): string
  limit?: Name
  formatLimit?(value: number): string
  scale?: number
}

const formatPercent = (value: number) => `${value < 9.95 ? value.toFixed(1) : Math.round(value)}%`
const formatSize = (value: number) => formatBytes(Math.round(value))
const formatRate = (value: number) => `${formatSize(value)}/s`
const formatCount = (value: number) => String(Number(value.toFixed(1)))
const formatLoad = (value: number) => value.toFixed(2)
const formatCpus = (value: number) => `${formatCount(value)} CPU${value === 1 ? '' : 's'}`

const BOX_STYLES: Style<BoxSeriesName>[] = [
  {
    name: 'cpu_pct',
    label: 'CPU',
    format: formatPercent,
    limit: 'cpu_count',
    formatLimit: formatCpus,
    scale: 100,
  },
  { name: 'mem_used_bytes', label: 'memory', format: formatSize, limit: 'mem_total_bytes' },
  { name: 'load1', label: 'load 1m', format: formatLoad },
  { name: 'load5', label: 'load 5m', format: formatLoad },
  { name: 'load15', label: 'load 15m', format: formatLoad },
  { name: 'process_count', label: 'processes', format: formatCount },
  { name: 'listener_count', label: 'listening ports', format: formatCount },
  { name: 'disk_read_bytes_per_sec', label: 'disk read', format: formatRate },
  { name: 'disk_write_bytes_per_sec', label: 'disk written', format: formatRate },
]
const FILE_SYSTEM_STYLES: Style<FileSystemSeriesName>[] = [
  { name: 'used_bytes', label: 'used', format: formatSize, limit: 'total_bytes' },
  { name: 'read_bytes_per_sec', label: 'read', format: formatRate },
  { name: 'write_bytes_per_sec', label: 'written', format: formatRate },
]
const INTERFACE_STYLES: Style<InterfaceSeriesName>[] = [
  { name: 'rx_bytes_per_sec', label: 'received', format: formatRate },
  { name: 'tx_bytes_per_sec', label: 'sent', format: formatRate },
]

/** The box, then each file system, then each network interface. */
export function listSeries({ series, fs, ifaces }: Metrics): ShownSeries[] {
  return [
    ...toShownSeries(series, BOX_STYLES),
    ...fs.flatMap((group) => toShownSeries(group, FILE_SYSTEM_STYLES, group.mount)),
    ...ifaces.flatMap((group) => toShownSeries(group, INTERFACE_STYLES, group.name)),
  ]
}

function toShownSeries<Name extends string>(
  group: Record<Name, MetricsValues>,
  styles: Style<Name>[],
  prefix?: string,
): ShownSeries[] {
  return styles.map(({ name, label, format, limit, formatLimit = format, scale = null }) => ({
    label: prefix === undefined ? label : `${shorten(prefix)} ${label}`,
    values: group[name],
    format,
    limit: limit === undefined ? null : { values: group[limit], format: formatLimit },
    scale,
  }))
}

/** Longer mount points leave no space for the figures. */
const MAX_PREFIX_CHARS = 24

/** Keeps the end, which distinguishes mount points better than the start. */
function shorten(prefix: string): string {
  const characters = [...prefix]
  return characters.length <= MAX_PREFIX_CHARS
    ? prefix
    : `…${characters.slice(1 - MAX_PREFIX_CHARS).join('')}`
}

export const hasValue = ({ avg }: MetricsValues): boolean => avg.some((value) => value !== null)
