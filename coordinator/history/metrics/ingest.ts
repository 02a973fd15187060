// Stores the samples of boxes, and makes the rollups.
import type { Logger } from 'pino'
import { METRICS_RESOLUTIONS, type MetricsSample } from '../../../shared/api/metrics.ts'
import type { Clock } from '../../../shared/clock.ts'
import { SAMPLE_SECONDS } from '../../../shared/report-limits.ts'
import { createBoxWarnings } from '../../base/log/box-warnings.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import type { Trx } from '../../db/transaction.ts'
import { copyInto, createPeriodChunk, getChunkStart, hasSample } from './chunk.ts'
import { encodeChunk } from './codec.ts'
import { isStorableTime } from './retention.ts'
import { rollUp } from './roll-up.ts'
import { toChunk } from './samples.ts'
import { findChunk, listPendingChunks, writeChunk } from './store.ts'
import type { DecodeRow } from './stored-chunks.ts'

export type MetricsIngest = {
  /** Skips samples of the future, expired samples, and samples of a bucket that has one already. */
  apply(trx: Trx, boxId: string, samples: readonly MetricsSample[]): Promise<void>
}

/**
 * Hours per box other than its current one, which cost a write of the rollups: ten days at once, then one every two seconds.
 * A box reports its backlog in order, so each hour counts once.
 */
const OTHER_HOURS = { capacity: 240, perSecond: 0.5 }
/** The current hour is written every 30 seconds, an older one rarely. */
const LEVEL = { current: 1, closed: 9 } as const

export function createMetricsIngest(options: {
  clock: Clock
  log: Pick<Logger, 'warn'>
  decodeRow: DecodeRow
}): MetricsIngest {
  const { clock, log, decodeRow } = options
  const warn = createBoxWarnings({ log, clock })
  const otherHours = createTokenBuckets(clock, OTHER_HOURS)

  function selectAcceptable(boxId: string, samples: readonly MetricsSample[]): MetricsSample[] {
    const now = clock.now()
    const acceptable = samples.filter(({ start }) => isStorableTime(start * 1000, now))
    if (acceptable.length < samples.length)
      warn(boxId, 'skipped samples of a box: they are of the future, or too old')
    return acceptable
  }

  /** Returns `rejected` when the limit is reached. */
  async function addSamples(
    trx: Trx,
    boxId: string,
    { start, samples }: { start: number; samples: readonly MetricsSample[] },
  ): Promise<'unchanged' | 'current' | 'other' | 'rejected'> {
    const row = await findChunk(trx, boxId, SAMPLE_SECONDS, start)
    const hour = row?.pending_rollup === 1 ? 'current' : 'other'
    if (hour === 'other' && otherHours.take(boxId) > 0) return 'rejected'
    const chunk = row === undefined ? createPeriodChunk(SAMPLE_SECONDS) : decodeRow(row)
    let isChanged = false
    for (const sample of samples) {
      const slot = (sample.start - start) / SAMPLE_SECONDS
      if (hasSample(chunk, slot)) continue
      copyInto(chunk, toChunk(sample), slot)
      isChanged = true
    }
    if (!isChanged) return 'unchanged'
    const data = encodeChunk(chunk, LEVEL.current)
    await writeChunk(trx, { box_id: boxId, res: SAMPLE_SECONDS, start, pending_rollup: 1, data })
    return hour
  }

  /** Adds all samples to the rollups, except those of the newest hour, which is not complete. */
  async function rollUpPending(trx: Trx, boxId: string): Promise<void> {
    const [, ...complete] = await listPendingChunks(trx, [boxId])
    if (complete.length === 0) return
    const hours = complete.map((row) => ({ row, chunk: decodeRow(row) }))
    for (const res of METRICS_RESOLUTIONS) {
      if (res === SAMPLE_SECONDS) continue
      const hoursByStart = Map.groupBy(hours, ({ row }) => getChunkStart(res, row.start))
      for (const [start, hoursOfChunk] of hoursByStart) {
        const stored = await findChunk(trx, boxId, res, start)
        const target = stored === undefined ? createPeriodChunk(res) : decodeRow(stored)
        for (const { row, chunk } of hoursOfChunk)
          copyInto(target, rollUp(chunk, res / SAMPLE_SECONDS), (row.start - start) / res)
        const data = encodeChunk(target, LEVEL.closed)
        await writeChunk(trx, { box_id: boxId, res, start, pending_rollup: 0, data })
      }
    }
    for (const { row, chunk } of hours)
      await writeChunk(trx, { ...row, pending_rollup: 0, data: encodeChunk(chunk, LEVEL.closed) })
  }

  return {
    async apply(trx, boxId, samples) {
      const byHour = Map.groupBy(selectAcceptable(boxId, samples), ({ start }) =>
        getChunkStart(SAMPLE_SECONDS, start),
      )
      let needsRollup = false
      // The newest hour first: the limit does not apply to the samples of a box whose clock is right.
      for (const [start, samples] of [...byHour].sort(([a], [b]) => b - a)) {
        const result = await addSamples(trx, boxId, { start, samples })
        if (result === 'rejected') {
          warn(boxId, 'skipped samples of a box: they are of too many different hours')
          break
        }
        if (result === 'other') needsRollup = true
      }
      if (needsRollup) await rollUpPending(trx, boxId)
    },
  }
}
