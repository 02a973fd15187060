// Writes the time index of logs under the shell runner, whose command writes to the logs directly. native/run.c describes
// the file.
import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { getTimesPath, MAX_TIME_RECORDS, readSortedRecords, TIME_RECORD_BYTES } from './output-times.ts'
import { type DetachedProcess, OUTPUT_STREAMS, type ProcessExit } from './types.ts'

/** How much of a log has times, and the slot of the next record. */
type State = { size: number; nextSlot: number }

/** Creates the index of both logs in a process directory. A process without them has no times. */
export function createTimeIndex(dir: string): void {
  for (const name of OUTPUT_STREAMS) closeSync(openSync(getTimesPath(`${dir}/${name}`), 'a', 0o600))
}

export type TimeRecorder = {
  /**
   * Gives the current time to the output since the last call, or the time of the exit if that is earlier. The first call
   * records nothing if there are records.
   */
  update(detachedProcess: DetachedProcess): void
}

export function createTimeRecorder({ clock, log }: { clock: Clock; log: Logger }): TimeRecorder {
  const states = new Map<string, State>()

  /** An infinite size for a log without an index: the process was started by an earlier version. */
  function open(path: string): State {
    const sorted = readSortedRecords(getTimesPath(path))
    if (sorted === null) return { size: Number.POSITIVE_INFINITY, nextSlot: 0 }
    const { records, nextSlot } = sorted
    return { size: records.length === 0 ? 0 : getSize(path), nextSlot }
  }

  function updateLog(path: string, exit: ProcessExit | null): void {
    const state = states.get(path) ?? open(path)
    states.set(path, state)
    const size = getSize(path)
    if (size > state.size) {
      const at = Math.min(clock.now(), exit?.finishedAt ?? Number.POSITIVE_INFINITY)
      writeRecord(getTimesPath(path), state.nextSlot, at, state.size)
      state.size = size
      state.nextSlot = (state.nextSlot + 1) % MAX_TIME_RECORDS
    }
    if (exit !== null) states.delete(path)
  }

  return {
    update({ logs, exit, processId }) {
      try {
        for (const name of OUTPUT_STREAMS) updateLog(logs[name].path, exit)
      } catch (err) {
        // The disk is full, or the process directory was deleted: the output has the time of the output before it.
        log.warn({ err, processId }, 'failed to record the time of process output')
      }
    },
  }
}

const getSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

function writeRecord(path: string, slot: number, at: number, offset: number): void {
  const record = Buffer.alloc(TIME_RECORD_BYTES)
  record.writeBigInt64LE(BigInt(at), 0)
  record.writeBigInt64LE(BigInt(offset), 8)
  const fd = openSync(path, 'r+')
  try {
    writeSync(fd, record, 0, record.length, slot * TIME_RECORD_BYTES)
  } finally {
    closeSync(fd)
  }
}
