// Converts the values of samples to the integers that are stored, and back.
import type { MetricsSample, Series } from '../../../shared/api/metrics.ts'
import { type Chunk, createChunk, ensureGroup, type Kind, listSeries } from './chunk.ts'

const toSteps = (value: number, { step }: Series): number => Math.round(value / step)

/**
 * Returns the conversion to the unit of the series. Dividing by the inverse of a fraction gives the nearest number: 3 steps
 * of 0.1 are 0.3, not 0.30000000000000004.
 */
export function createConversion({ step }: Series): (steps: number) => number {
  const perUnit = Math.round(1 / step)
  return step < 1 ? (steps) => steps / perUnit : (steps) => steps * step
}

/** Returns a chunk of one bucket. */
export function toChunk({ values, fs, ifaces }: MetricsSample): Chunk {
  const chunk = createChunk(1, { isRollup: false })
  addValues(chunk, 'box', '', values)
  for (const { mount, ...fsValues } of fs) addValues(chunk, 'fs', mount, fsValues)
  for (const { name, ...ifaceValues } of ifaces) addValues(chunk, 'ifaces', name, ifaceValues)
  return chunk
}

function addValues(chunk: Chunk, kind: Kind, name: string, values: Record<string, number | null>): void {
  const group = ensureGroup(chunk, kind, name)
  if (group === undefined) return
  for (const [seriesName, series] of listSeries(kind)) {
    const value = values[seriesName] ?? null
    const column = group[seriesName]?.avg
    if (column !== undefined) column[0] = value === null ? null : toSteps(value, series)
  }
}
