// Returns the metrics of a box (spec §4.3).
import { BOX_SERIES, type Metrics, type MetricsQuery } from '../../../shared/api/metrics.ts'
import type { Clock } from '../../../shared/clock.ts'
import { SAMPLE_SECONDS } from '../../../shared/report-limits.ts'
import type { Db } from '../../db/open.ts'
import type { Actor } from '../../http/actor.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { type Chunk, copyInto, createChunk, getChunkStart } from './chunk.ts'
import { presentMetrics } from './present.ts'
import { rollUp } from './roll-up.ts'
import { createConversion } from './samples.ts'
import { listChunks, listPendingChunks } from './store.ts'
import type { DecodeRow } from './stored-chunks.ts'
import { resolveTimeRange, type TimeRange } from './time-range.ts'

export type MetricsService = {
  /** Throws not_found for a box that the actor may not see, and bad_request unless `from` is before `to`. */
  get(actor: Actor, boxId: string, query: MetricsQuery): Promise<Metrics>
  /** In percent of the limit of the box. Milliseconds since the epoch. null: most samples of the range are missing. */
  averageCpu(boxId: string, range: { from: number; to: number }): Promise<number | null>
}

/** The part of the samples that an average needs. */
const MIN_COVERAGE = 0.9
const AVERAGE_RES = 300

export function createMetricsService(options: {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'find'>
  decodeRow: DecodeRow
}): MetricsService {
  const { db, clock, boxes, decodeRow } = options

  async function readRange(boxId: string, { res, first, end }: TimeRange): Promise<Chunk> {
    const result = createChunk((end - first) / res, { isRollup: res !== SAMPLE_SECONDS })
    if (result.slots === 0) return result
    // Read before the rollups: when the rollups are made in between, both contain the samples.
    const pending = res === SAMPLE_SECONDS ? [] : await listPendingChunks(db, boxId)
    const rows = await listChunks(db, boxId, res, { from: getChunkStart(res, first), to: end })
    for (const row of pending)
      copyInto(result, rollUp(decodeRow(row), res / SAMPLE_SECONDS), (row.start - first) / res)
    for (const row of rows) copyInto(result, decodeRow(row), (row.start - first) / res)
    return result
  }

  return {
    async get(actor, boxId, query) {
      await boxes.find(actor, boxId)
      const range = resolveTimeRange(query, clock.now())
      return presentMetrics(await readRange(boxId, range), range)
    },
    async averageCpu(boxId, { from, to }) {
      const first = Math.floor(from / 1000 / AVERAGE_RES) * AVERAGE_RES
      const end = Math.floor(to / 1000 / AVERAGE_RES) * AVERAGE_RES
      const { box } = await readRange(boxId, { from, to, res: AVERAGE_RES, first, end })
      const steps = box.get('')?.cpu_pct?.avg.filter((value) => value !== null) ?? []
      if (steps.length < (MIN_COVERAGE * (end - first)) / AVERAGE_RES) return null
      const toPercent = createConversion(BOX_SERIES.cpu_pct)
      return toPercent(steps.reduce((sum, value) => sum + value, 0) / steps.length)
    },
  }
}
