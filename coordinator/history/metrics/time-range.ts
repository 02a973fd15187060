// The time range of a request for metrics: its defaults, limits and resolution (spec §4.3, §8).
import type { MetricsQuery, MetricsResolution } from '../../../shared/api/metrics.ts'
import { ApiError } from '../../../shared/errors.ts'
import { METRICS_RETENTION_SECONDS } from './retention.ts'

/** `from` and `to` in milliseconds since the epoch; `first` and `end` are the buckets, in epoch seconds. */
export type TimeRange = { from: number; to: number; res: MetricsResolution; first: number; end: number }

const HOUR_MS = 60 * 60 * 1000
const MAX_SPAN_MS = { 30: 6 * HOUR_MS, 300: 72 * HOUR_MS } as const

/** Throws bad_request unless `from` is before `to`. A range outside of the retention becomes empty. */
export function resolveTimeRange(query: MetricsQuery, now: number): TimeRange {
  const to = query.to ?? now
  const from = query.from ?? to - HOUR_MS
  if (from >= to)
    throw new ApiError(
      'bad_request',
      query.to === undefined ? 'from must be in the past when to is not given' : 'from must be before to',
    )
  const clamp = (instant: number) => Math.min(now, Math.max(now - METRICS_RETENTION_SECONDS * 1000, instant))
  const range = { from: clamp(from), to: clamp(to) }
  const span = range.to - range.from
  const res = span <= MAX_SPAN_MS[30] ? 30 : span <= MAX_SPAN_MS[300] ? 300 : 3600
  if (span === 0) return { ...range, res, first: 0, end: 0 }
  return {
    ...range,
    res,
    first: Math.floor(range.from / 1000 / res) * res,
    end: Math.ceil(range.to / 1000 / res) * res,
  }
}
