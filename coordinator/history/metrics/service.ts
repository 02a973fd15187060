// Returns the metrics of a box (spec §4.3).
import {
  BOX_SERIES,
  CPU_STEP_SECONDS,
  type CpuOfBoxes,
  type Metrics,
  type MetricsQuery,
} from '../../../shared/api/metrics.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { SAMPLE_SECONDS } from '../../../shared/report-limits.ts'
import type { Db } from '../../db/open.ts'
import type { Actor } from '../../http/actor.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { type Chunk, copyInto, createChunk, createColumn, getChunkStart } from './chunk.ts'
import { presentMetrics } from './present.ts'
import { rollUp } from './roll-up.ts'
import { createConversion } from './samples.ts'
import { listChunks, listPendingChunks, type MetricChunkRow } from './store.ts'
import type { DecodeRow } from './stored-chunks.ts'
import { resolveTimeRange, type TimeRange } from './time-range.ts'

export type MetricsService = {
  /** Throws not_found for a box that the actor may not see, and bad_request unless `from` is before `to`. */
  get(actor: Actor, boxId: string, query: MetricsQuery): Promise<Metrics>
  /** The CPU of the boxes that the actor may see, over the last hour. */
  listCpu(actor: Actor, boxIds: readonly string[]): Promise<CpuOfBoxes>
  /** In percent of the limit of the box. Milliseconds since the epoch. null: most samples of the range are missing. */
  averageCpu(boxId: string, range: { from: number; to: number }): Promise<number | null>
}

/** The part of the samples that an average needs. */
const MIN_COVERAGE = 0.9
const HOUR_SECONDS = 3600

type Buckets = Pick<TimeRange, 'res' | 'first' | 'end'>

export function createMetricsService(options: {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'find' | 'listVisible'>
  decodeRow: DecodeRow
}): MetricsService {
  const { db, clock, boxes, decodeRow } = options

  async function readRanges(boxIds: readonly string[], { res, first, end }: Buckets): Promise<Chunk[]> {
    const slots = (end - first) / res
    const results = new Map(
      boxIds.map((id) => [id, createChunk(slots, { isRollup: res !== SAMPLE_SECONDS })]),
    )
    if (slots === 0 || boxIds.length === 0) return [...results.values()]
    // Read before the rollups: when the rollups are made in between, both contain the samples.
    const pending = res === SAMPLE_SECONDS ? [] : await listPendingChunks(db, boxIds)
    const rows = await listChunks(db, boxIds, res, { from: getChunkStart(res, first), to: end })
    const copy = (row: MetricChunkRow, chunk: Chunk) => {
      const result = results.get(row.box_id)
      if (result !== undefined) copyInto(result, chunk, (row.start - first) / res)
    }
    for (const row of pending) copy(row, rollUp(decodeRow(row), res / SAMPLE_SECONDS))
    for (const row of rows) copy(row, decodeRow(row))
    return [...results.values()]
  }

  async function readRange(boxId: string, buckets: Buckets): Promise<Chunk> {
    const [chunk] = await readRanges([boxId], buckets)
    return chunk ?? createChunk(0, { isRollup: false })
  }

  return {
    async get(actor, boxId, query) {
      await boxes.find(actor, boxId)
      const range = resolveTimeRange(query, clock.now())
      return presentMetrics(await readRange(boxId, range), range)
    },
    async listCpu(actor, boxIds) {
      const visible = await boxes.listVisible(actor, boxIds)
      const res = CPU_STEP_SECONDS
      const end = Math.ceil(clock.now() / 1000 / res) * res
      const first = end - HOUR_SECONDS
      const chunks = await readRanges(visible, { res, first, end })
      const toPercent = createConversion(BOX_SERIES.cpu_pct)
      const noSamples = createColumn(HOUR_SECONDS / res)
      const listValues = ({ box }: Chunk) =>
        (box.get('')?.cpu_pct?.avg ?? noSamples).map((value) => (value === null ? null : toPercent(value)))
      return {
        from: toTimestamp(first * 1000),
        res,
        boxes: Object.fromEntries(chunks.map((chunk, index) => [visible[index], listValues(chunk)])),
      }
    },
    async averageCpu(boxId, { from, to }) {
      const first = Math.floor(from / 1000 / CPU_STEP_SECONDS) * CPU_STEP_SECONDS
      const end = Math.floor(to / 1000 / CPU_STEP_SECONDS) * CPU_STEP_SECONDS
      const { box } = await readRange(boxId, { res: CPU_STEP_SECONDS, first, end })
      const steps = box.get('')?.cpu_pct?.avg.filter((value) => value !== null) ?? []
      if (steps.length < (MIN_COVERAGE * (end - first)) / CPU_STEP_SECONDS) return null
      const toPercent = createConversion(BOX_SERIES.cpu_pct)
      return toPercent(steps.reduce((sum, value) => sum + value, 0) / steps.length)
    },
  }
}
