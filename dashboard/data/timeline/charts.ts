// The charts of the timeline, from the metrics of a box.
import type { Metrics, MetricsValues } from '../../../shared/api/metrics.ts'
import { formatBytes } from '../sizes.ts'

export type ChartLine = { label: string; values: readonly (number | null)[] }

export type Chart = {
  id: 'cpu' | 'memory' | 'space' | 'disk' | 'network'
  title: string
  /** What the box has at most; null: unknown. */
  limit: number | null
  /** The top of the value axis: a round value that contains all lines. */
  top: number
  lines: ChartLine[]
  format(value: number): string
}

export type Charts = {
  /** The middle of each bucket, in seconds since the epoch. */
  times: number[]
  charts: Chart[]
  /** What is not measured for this box. */
  missing: string[]
  /** Seconds per bucket. */
  resolution: number
}

/** How many steps of the value axis a unit has: 1, 2, 5, 10 or 1, 2, 4, …, 1024. */
const DECIMAL = [1, 2, 5, 10]
const BINARY = Array.from({ length: 11 }, (_, index) => 2 ** index)

/** The next round value above. @param min for a box that does nothing */
function roundUp(value: number, steps: readonly number[], min: number): number {
  const base = steps.at(-1) ?? 10
  const size = Math.max(value, min)
  const unit = base ** Math.floor(Math.log(size) / Math.log(base))
  return unit * (steps.find((step) => step * unit >= size) ?? base)
}

const formatPercent = (value: number): string => `${Number(value.toFixed(value < 10 ? 1 : 0))} %`
const formatRate = (value: number): string => `${formatBytes(value)}/s`

export function createCharts(metrics: Metrics): Charts {
  const { buckets, res, series, fs, ifaces } = metrics
  // Charts for all file systems would have no space.
  const largest = [...fs].sort((a, b) => getMax(b.used_bytes.avg) - getMax(a.used_bytes.avg))[0]
  const all: Omit<Chart, 'top'>[] = [
    {
      id: 'cpu',
      title: 'CPU',
      limit: 100,
      format: formatPercent,
      lines: [
        { label: 'mean', values: series.cpu_pct.avg },
        { label: 'highest', values: series.cpu_pct.max },
      ],
    },
    {
      id: 'memory',
      title: 'Memory',
      limit: getLast(series.mem_total_bytes),
      format: formatBytes,
      lines: [{ label: 'used', values: series.mem_used_bytes.avg }],
    },
    {
      id: 'space',
      title: `Disk space${largest ? ` of ${largest.mount}` : ''}`,
      limit: largest ? getLast(largest.total_bytes) : null,
      format: formatBytes,
      lines: largest ? [{ label: 'used', values: largest.used_bytes.avg }] : [],
    },
    {
      id: 'disk',
      title: 'Disk',
      limit: null,
      format: formatRate,
      lines: [
        { label: 'read', values: series.disk_read_bytes_per_sec.avg },
        { label: 'written', values: series.disk_write_bytes_per_sec.avg },
      ],
    },
    {
      id: 'network',
      title: 'Network',
      limit: null,
      format: formatRate,
      lines: [
        {
          label: 'received',
          values: addUp(
            buckets.length,
            ifaces.map(({ rx_bytes_per_sec }) => rx_bytes_per_sec),
          ),
        },
        {
          label: 'sent',
          values: addUp(
            buckets.length,
            ifaces.map(({ tx_bytes_per_sec }) => tx_bytes_per_sec),
          ),
        },
      ],
    },
  ]
  const isKnown = ({ lines }: (typeof all)[number]) =>
    lines.some(({ values }) => values.some((value) => value !== null))
  const charts = all.filter(isKnown).map((chart) => ({ ...chart, top: findTop(chart) }))
  return {
    times: buckets.map((start) => start + res / 2),
    charts,
    missing: charts.length === 0 ? [] : all.filter((chart) => !isKnown(chart)).map(({ title }) => title),
    resolution: res,
  }
}

/** A limit that is near to the values is the top: it is then drawn as a line. */
function findTop({ id, limit, lines }: Omit<Chart, 'top'>): number {
  const max = Math.max(...lines.map(({ values }) => getMax(values)))
  const top = id === 'cpu' ? roundUp(max, DECIMAL, 1) : roundUp(max, BINARY, 1024)
  return limit !== null && limit <= 2 * max ? Math.max(limit, max) : top
}

const getMax = (values: readonly (number | null)[]): number =>
  values.reduce<number>((max, value) => Math.max(max, value ?? 0), 0)
const getLast = ({ avg }: MetricsValues): number | null => avg.findLast((value) => value !== null) ?? null

/** Null where no group has a value. */
function addUp(length: number, groups: readonly MetricsValues[]): (number | null)[] {
  return Array.from({ length }, (_, index) => {
    const known = groups.map(({ avg }) => avg[index] ?? null).filter((value) => value !== null)
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0)
  })
}

/** The indexes of values between two gaps, which a line does not show. */
export function listIsolated(values: readonly (number | null | undefined)[]): number[] {
  const isGap = (index: number) => (values[index] ?? null) === null
  return [...values.keys()].filter((index) => !isGap(index) && isGap(index - 1) && isGap(index + 1))
}

/** The bucket of a time in seconds since the epoch; null: the charts have none. */
export function findBucket({ times, resolution }: Charts, time: number): number | null {
  const index = Math.round((time - (times[0] ?? 0)) / resolution)
  return index >= 0 && index < times.length ? index : null
}
