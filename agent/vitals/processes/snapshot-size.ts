// Keeps the report of a snapshot within its bounds, whatever the names and command lines are.

import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import { createDelta, EMPTY_SNAPSHOT, type ProcessSnapshot } from '../../../shared/process-delta.ts'
import { MAX_DELTA_CHARS } from '../../../shared/report-limits.ts'

/** Characters of command lines, and the processes that are listed. 500 processes without command lines always fit. */
const STEPS = [
  { commandChars: 64, maxProcesses: 1000 },
  { commandChars: 0, maxProcesses: 1000 },
  { commandChars: 0, maxProcesses: 500 },
]
/** The list of removed processes, and the other fields of the report line. */
const RESERVED = 16 * 1024

/**
 * Returns the snapshot, where necessary with shorter command lines or fewer processes. Depends on the complete snapshot
 * and not on the differences, so that command lines do not change between snapshots.
 * @param snapshot the processes in order of importance
 */
export function fitSnapshot(snapshot: ProcessSnapshot): ProcessSnapshot {
  let fitted = snapshot
  for (const step of STEPS) {
    if (fits(fitted)) return fitted
    fitted = shorten(snapshot, step)
  }
  return fitted
}

function fits(snapshot: ProcessSnapshot): boolean {
  const text = JSON.stringify(createDelta(EMPTY_SNAPSHOT, snapshot))
  if (text.length > MAX_DELTA_CHARS - RESERVED) return false
  // The text is a string of the report: quotes and backslashes are escaped again.
  return Buffer.byteLength(JSON.stringify(text)) <= TUNNEL_LIMITS.reportBytes - RESERVED
}

function shorten(snapshot: ProcessSnapshot, { commandChars, maxProcesses }: (typeof STEPS)[number]) {
  const processes: ProcessSnapshot['processes'] = new Map(
    [...snapshot.processes].slice(0, maxProcesses).map(([pid, entry]) => {
      const [, parent, start, user, name, command] = entry.process
      const shorter = commandChars === 0 ? null : (command?.slice(0, commandChars) ?? null)
      return [pid, { ...entry, process: [pid, parent, start, user, name, shorter] }]
    }),
  )
  return { ...snapshot, processes }
}
