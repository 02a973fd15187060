// The metrics of one box in one period, as columns: one value per series and bucket.
import {
  BOX_SERIES,
  FILE_SYSTEM_SERIES,
  INTERFACE_SERIES,
  type MetricsResolution,
  type Series,
} from '../../../shared/api/metrics.ts'

/** One value per bucket, in steps of the series. null: no sample, or not known for this box. */
export type Column = (number | null)[]
/** In a chunk of samples, `avg` and `max` are the same array. */
export type SeriesColumns = { avg: Column; max: Column }
/** The series of the box, of one file system, or of one interface. */
export type Group = Record<string, SeriesColumns>

export const SERIES = { box: BOX_SERIES, fs: FILE_SYSTEM_SERIES, ifaces: INTERFACE_SERIES } as const
export type Kind = keyof typeof SERIES
export const KINDS = Object.keys(SERIES) as Kind[]

/** Groups by mount point, or by name of the interface. The group of the box has the name ''. */
export type Chunk = { slots: number; isRollup: boolean } & Record<Kind, Map<string, Group>>

/** File systems, and interfaces, of one chunk and of one response. A box that reports more names loses the others. */
export const MAX_GROUPS = 32

/** Seconds of one chunk. */
const PERIODS: Record<MetricsResolution, number> = { 30: 3600, 300: 24 * 3600, 3600: 10 * 24 * 3600 }
export const getPeriod = (res: MetricsResolution): number => PERIODS[res]
export const getChunkStart = (res: MetricsResolution, time: number): number => time - (time % PERIODS[res])

export const listSeries = (kind: Kind): [name: string, series: Series][] => Object.entries(SERIES[kind])

export const createChunk = (slots: number, { isRollup }: { isRollup: boolean }): Chunk => ({
  slots,
  isRollup,
  box: new Map(),
  fs: new Map(),
  ifaces: new Map(),
})

/** An empty chunk of a whole period. */
export const createPeriodChunk = (res: MetricsResolution): Chunk =>
  createChunk(PERIODS[res] / res, { isRollup: res !== 30 })

export const createColumn = (slots: number): Column => new Array<number | null>(slots).fill(null)

/** Returns the group, and creates it when there is none. undefined: the chunk has too many. */
export function ensureGroup(chunk: Chunk, kind: Kind, name: string): Group | undefined {
  const groups = chunk[kind]
  const existing = groups.get(name)
  if (existing !== undefined) return existing
  if (groups.size >= MAX_GROUPS) return undefined
  const group: Group = {}
  for (const [series] of listSeries(kind)) {
    const avg = createColumn(chunk.slots)
    group[series] = { avg, max: chunk.isRollup ? createColumn(chunk.slots) : avg }
  }
  groups.set(name, group)
  return group
}

/** Copies the values of `source` into `target`, from slot `offset` on, which may be negative. Skips values outside. */
export function copyInto(target: Chunk, source: Chunk, offset: number): void {
  const first = Math.max(0, -offset)
  const end = Math.min(source.slots, target.slots - offset)
  for (const kind of KINDS) {
    for (const [name, group] of source[kind]) {
      if (!hasValues(group, first, end)) continue
      const targetGroup = ensureGroup(target, kind, name)
      if (targetGroup === undefined) continue
      for (const [series, columns] of Object.entries(group)) {
        const targetColumns = targetGroup[series]
        if (targetColumns === undefined) continue
        copyColumn(targetColumns.avg, columns.avg, { first, end, offset })
        if (targetColumns.max !== targetColumns.avg)
          copyColumn(targetColumns.max, columns.max, { first, end, offset })
      }
    }
  }
}

type Range = { first: number; end: number; offset: number }

function copyColumn(target: Column, source: Column, { first, end, offset }: Range): void {
  for (let slot = first; slot < end; slot += 1) {
    const value = source[slot] ?? null
    if (value !== null) target[slot + offset] = value
  }
}

const hasValues = (group: Group, first: number, end: number): boolean =>
  Object.values(group).some(({ avg }) => {
    for (let slot = first; slot < end; slot += 1) if (avg[slot] !== null) return true
    return false
  })

/** Whether the bucket has a sample. */
export const hasSample = (chunk: Chunk, slot: number): boolean =>
  KINDS.some((kind) => [...chunk[kind].values()].some((group) => hasValues(group, slot, slot + 1)))
