// How much memory is taken, as a part of what there is.
import { readFileSync } from 'node:fs'
import type { ProcessEntry } from '../exec/process-table.ts'

/** The `Name:   123 kB` lines of /proc/meminfo and /proc/PID/status; 0 where the line is missing. */
const kilobytes = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)

/** 0 to 1. What the kernel could hand out at once (MemAvailable) does not count as taken. */
export function machineMemoryPart(procRoot: string): number {
  const meminfo = readFileSync(`${procRoot}/meminfo`, 'latin1')
  const total = kilobytes(meminfo, 'MemTotal')
  return total === 0 ? 0 : 1 - kilobytes(meminfo, 'MemAvailable') / total
}

/**
 * Of `bytes`: what the box's processes hold for themselves. Pages of programs and files are left out: they are shared
 * with others, and given back when they are needed.
 */
export function allotmentMemoryPart(processes: readonly ProcessEntry[], bytes: number, procRoot: string) {
  const held = processes.reduce((sum, { pid }) => sum + heldKilobytes(pid, procRoot), 0)
  return (held * 1024) / bytes
}

function heldKilobytes(pid: number, procRoot: string): number {
  let status: string
  try {
    status = readFileSync(`${procRoot}/${pid}/status`, 'latin1')
  } catch (error) {
    // It ended between the listing and this look.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH'))
      return 0
    throw error
  }
  return kilobytes(status, 'RssAnon') + kilobytes(status, 'RssShmem')
}
