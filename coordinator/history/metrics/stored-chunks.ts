// Decodes stored chunks. A damaged chunk is logged once and treated as empty.
import type { Logger } from 'pino'
import type { MetricsResolution } from '../../../shared/api/metrics.ts'
import { type Chunk, createPeriodChunk } from './chunk.ts'
import { DamagedChunkError, decodeChunk } from './codec.ts'
import type { MetricChunkRow } from './store.ts'

export type DecodeRow = (row: Pick<MetricChunkRow, 'box_id' | 'res' | 'start' | 'data'>) => Chunk

/** Limits the memory for the keys of logged chunks. */
const MAX_LOGGED = 1000

export function createRowDecoder(log: Pick<Logger, 'error'>): DecodeRow {
  const logged = new Set<string>()
  return ({ box_id: boxId, res, start, data }) => {
    try {
      return decodeChunk(data, res as MetricsResolution)
    } catch (err) {
      if (!(err instanceof DamagedChunkError)) throw err
      const key = `${boxId} ${res} ${start}`
      if (!logged.has(key) && logged.size < MAX_LOGGED) {
        logged.add(key)
        log.error({ err, boxId, res, start }, 'stored metrics are damaged; this period of the box is empty')
      }
      return createPeriodChunk(res as MetricsResolution)
    }
  }
}
