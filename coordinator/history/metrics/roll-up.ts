// Computes rollups: the mean and the maximum of the samples in each longer bucket.
import { type Chunk, type Column, createChunk, ensureGroup, KINDS } from './chunk.ts'

/**
 * @param samples a chunk of samples
 * @param factor samples per bucket of the result
 */
export function rollUp(samples: Chunk, factor: number): Chunk {
  const result = createChunk(samples.slots / factor, { isRollup: true })
  for (const kind of KINDS) {
    for (const [name, group] of samples[kind]) {
      const target = ensureGroup(result, kind, name)
      if (target === undefined) continue
      for (const [series, { avg }] of Object.entries(group)) {
        const columns = target[series]
        if (columns !== undefined) rollUpColumn(avg, factor, columns)
      }
    }
  }
  return result
}

function rollUpColumn(column: Column, factor: number, { avg, max }: { avg: Column; max: Column }): void {
  for (let slot = 0; slot < avg.length; slot += 1) {
    let [sum, count, largest] = [0, 0, 0]
    for (let i = slot * factor; i < (slot + 1) * factor; i += 1) {
      const value = column[i] ?? null
      if (value === null) continue
      largest = count === 0 ? value : Math.max(largest, value)
      sum += value
      count += 1
    }
    if (count === 0) continue
    avg[slot] = Math.round(sum / count)
    max[slot] = largest
  }
}
