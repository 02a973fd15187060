// Converts a chunk to the response of GET /boxes/{id}/metrics.
import type { Metrics, MetricsValues } from '../../../shared/api/metrics.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import { type Chunk, createChunk, ensureGroup, type Group, type Kind, listSeries } from './chunk.ts'
import { createConversion } from './samples.ts'
import type { TimeRange } from './time-range.ts'

/** @param chunk the buckets of the range */
export function presentMetrics(chunk: Chunk, { from, to, res, first, end }: TimeRange): Metrics {
  const buckets = Array.from({ length: (end - first) / res }, (_, i) => first + i * res)
  return {
    v: 1,
    res,
    from: toTimestamp(from),
    to: toTimestamp(to),
    buckets,
    series: presentGroup('box', chunk.box.get('') ?? emptyGroup('box', chunk.slots)),
    fs: sortByName(chunk.fs).map(([mount, group]) => ({ mount, ...presentGroup('fs', group) })),
    ifaces: sortByName(chunk.ifaces).map(([name, group]) => ({ name, ...presentGroup('ifaces', group) })),
  } as Metrics
}

const emptyGroup = (kind: Kind, slots: number): Group =>
  ensureGroup(createChunk(slots, { isRollup: false }), kind, '') ?? {}

const sortByName = (groups: Map<string, Group>): [string, Group][] =>
  [...groups].sort(([a], [b]) => (a < b ? -1 : 1))

const presentGroup = (kind: Kind, group: Group): Record<string, MetricsValues> =>
  Object.fromEntries(
    listSeries(kind).map(([name, series]) => {
      const convert = createConversion(series)
      const toUnits = (value: number | null) => (value === null ? null : convert(value))
      const { avg = [], max = [] } = group[name] ?? {}
      return [name, { avg: avg.map(toUnits), max: max.map(toUnits) }]
    }),
  )
