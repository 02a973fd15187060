// Decides whether the memory of this machine is so scarce that what waits or is frozen must be stopped, which frees its memory.
import { readFile } from 'node:fs/promises'

export type MemoryState = {
  totalBytes: number
  /** What programs can allocate without swapping. */
  availableBytes: number
  /** Percent of the last 10 s in which at least one process waited for memory. null: the kernel does not measure it. */
  stalledPercent: number | null
}

export type MemoryPressure = { isUnderMemoryPressure(): Promise<boolean> }

export type MemoryPressureOptions = {
  /** Default: DEFAULT_STALLED_PERCENT. */
  stalledPercent?: number
  /** Default: this machine. */
  read?: () => Promise<MemoryState>
}

export const DEFAULT_STALLED_PERCENT = 10

const MIN_AVAILABLE_SHARE = 0.05
const MIN_AVAILABLE_BYTES = 256 * 1024 ** 2
/**
 * With more available memory than this, other processes do not cause the stalls: a box that has reached its own limit
 * also waits for memory.
 */
const SCARCE_SHARE = 0.25

export function createMemoryPressure({
  stalledPercent = DEFAULT_STALLED_PERCENT,
  read = readMemoryState,
}: MemoryPressureOptions = {}): MemoryPressure {
  return {
    async isUnderMemoryPressure() {
      const { totalBytes, availableBytes, stalledPercent: measured } = await read()
      // Without swap, processes hardly wait before the kernel's OOM killer kills one.
      if (availableBytes < Math.max(totalBytes * MIN_AVAILABLE_SHARE, MIN_AVAILABLE_BYTES)) return true
      return measured !== null && measured > stalledPercent && availableBytes < totalBytes * SCARCE_SHARE
    },
  }
}

/** @param procDir for tests */
export async function readMemoryState(procDir = '/proc'): Promise<MemoryState> {
  const memory = await readFile(`${procDir}/meminfo`, 'utf8')
  const readField = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(memory)?.[1]) * 1024
  // A kernel without PSI has no such file, or the file cannot be read.
  const pressure = await readFile(`${procDir}/pressure/memory`, 'utf8').catch(() => '')
  const stalled = /^some avg10=([\d.]+)/m.exec(pressure)?.[1]
  return {
    totalBytes: readField('MemTotal'),
    availableBytes: readField('MemAvailable'),
    stalledPercent: stalled === undefined ? null : Number(stalled),
  }
}
