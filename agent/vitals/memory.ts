// Reads memory usage of the machine or of the box's processes as a fraction of the memory limit.
import { readFileSync } from 'node:fs'
import type { ProcessEntry } from '../exec/process-table.ts'

/** Parses a `Name:   123 kB` line of /proc/meminfo or /proc/PID/status; 0 when the line is missing. */
const parseKilobytes = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)

/** 0 to 1. Memory that the kernel can reclaim without swapping (MemAvailable) does not count as used. */
export function readMachineMemoryFraction(procRoot: string): number {
  const meminfo = readFileSync(`${procRoot}/meminfo`, 'latin1')
  const total = parseKilobytes(meminfo, 'MemTotal')
  return total === 0 ? 0 : 1 - parseKilobytes(meminfo, 'MemAvailable') / total
}

/**
 * Anonymous and shared memory of the box's processes, as a fraction of `limitBytes`. May exceed 1. File-backed pages are
 * excluded: they are shared between boxes and can be reclaimed.
 */
export function readBoxMemoryFraction(
  processes: readonly ProcessEntry[],
  limitBytes: number,
  procRoot: string,
) {
  const kilobytes = processes.reduce((sum, { pid }) => sum + readProcessMemoryKilobytes(pid, procRoot), 0)
  return (kilobytes * 1024) / limitBytes
}

function readProcessMemoryKilobytes(pid: number, procRoot: string): number {
  let status: string
  try {
    status = readFileSync(`${procRoot}/${pid}/status`, 'latin1')
  } catch (error) {
    // The process exited after it was listed.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH'))
      return 0
    throw error
  }
  return parseKilobytes(status, 'RssAnon') + parseKilobytes(status, 'RssShmem')
}
