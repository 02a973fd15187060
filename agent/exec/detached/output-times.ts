// Reads the time index of an output log: when each part of the output was written. native/run.c describes the file.
import { readSync } from 'node:fs'
import type { StreamEncoding } from '../../../shared/api/processes.ts'
import { MAX_REPORTED_INTEGER } from '../../../shared/report-limits.ts'
import { withStateFile } from '../../state-file.ts'

/** At most one record per interval. native/run.c has the same two values. */
export const TIME_INTERVAL_MS = 100
export const MAX_TIME_RECORDS = 64 * 1024
export const TIME_RECORD_BYTES = 16
/** Records that a refresh reads at once. */
const REFRESH_RECORDS = 64
/** A chunk of utf8 contains at least this many bytes, so that it contains a whole character. */
const MIN_CHUNK_BYTES: Record<StreamEncoding, number> = { utf8: 4, base64: 1 }

export const getTimesPath = (logPath: string): string => `${logPath}.times`

/** The output from `offset` on was read at `at`, or up to TIME_INTERVAL_MS later. Milliseconds since the epoch; bytes. */
export type TimeRecord = { at: number; offset: number }

/** The times of one log. */
export type OutputTimes = {
  /** The offset of the first output that may have been written at `time` or later. Infinity when there is none yet. */
  getOffsetSince(time: number): number
  /** The number of bytes to read from `offset`, at most `max`, such that they have one time. */
  limitRead(offset: number, max: number, encoding: StreamEncoding): number
  /** How many of the `length` bytes at `offset` have one time, and that time; null when it is unknown. */
  limitChunk(offset: number, length: number, encoding: StreamEncoding): { length: number; at: number | null }
}

/** null for a log without an index: the process was started by an earlier version. */
export function openOutputTimes(logPath: string): OutputTimes | null {
  const path = getTimesPath(logPath)
  const sorted = readSortedRecords(path)
  if (sorted === null) return null
  const { records } = sorted
  let { nextSlot } = sorted

  /** Reads the records that were written since the last call. */
  function refresh(): void {
    for (;;) {
      const count = Math.min(REFRESH_RECORDS, MAX_TIME_RECORDS - nextSlot)
      const newer = takeIncreasing(readRecords(path, nextSlot, count) ?? [], records.at(-1)?.offset ?? -1)
      records.push(...newer)
      nextSlot = (nextSlot + newer.length) % MAX_TIME_RECORDS
      if (newer.length < count) return
    }
  }

  /** The index of the record of the byte at `offset`; -1 when its time is unknown. */
  function findIndex(offset: number): number {
    let low = 0
    let high = records.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((records[middle]?.offset ?? 0) <= offset) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  const limit = (offset: number, length: number, end: number, encoding: StreamEncoding) =>
    Math.min(length, Math.max(end - offset, MIN_CHUNK_BYTES[encoding]))
  const endOf = (index: number) => records[index + 1]?.offset ?? Number.POSITIVE_INFINITY

  return {
    getOffsetSince(time) {
      refresh()
      const index = records.findIndex(({ at }) => at + TIME_INTERVAL_MS > time)
      // The output before the first record is of unknown time.
      if (index === 0) return 0
      return records[index]?.offset ?? Number.POSITIVE_INFINITY
    },
    limitRead: (offset, max, encoding) => limit(offset, max, endOf(findIndex(offset)), encoding),
    limitChunk(offset, length, encoding) {
      // The runner writes a record before the output: after a refresh, the records of the bytes that were read are known.
      if (endOf(findIndex(offset)) === Number.POSITIVE_INFINITY) refresh()
      const index = findIndex(offset)
      return { length: limit(offset, length, endOf(index), encoding), at: records[index]?.at ?? null }
    },
  }
}

/** Returns fewer records at the end of the file; null when the file does not exist, or is a FIFO, for example. */
const readRecords = (path: string, firstSlot: number, count: number): TimeRecord[] | null =>
  withStateFile(path, (fd) => {
    const buffer = Buffer.allocUnsafe(count * TIME_RECORD_BYTES)
    const length = readSync(fd, buffer, 0, buffer.length, firstSlot * TIME_RECORD_BYTES)
    return Array.from({ length: Math.floor(length / TIME_RECORD_BYTES) }, (_, slot) => ({
      at: readInteger(buffer, slot * TIME_RECORD_BYTES),
      offset: readInteger(buffer, slot * TIME_RECORD_BYTES + 8),
    }))
  })

/** Faster than readBigInt64LE. Exact up to MAX_REPORTED_INTEGER, the maximum of isValid. */
const readInteger = (buffer: Buffer, position: number): number =>
  buffer.readUInt32LE(position) + buffer.readUInt32LE(position + 4) * 2 ** 32

/** False for a record that a power loss has damaged. */
const isValid = ({ at, offset }: TimeRecord): boolean =>
  at > 0 && at <= MAX_REPORTED_INTEGER && offset <= MAX_REPORTED_INTEGER

/** The records up to the first one whose offset does not increase: the slots after it are older. */
function takeIncreasing(slots: readonly TimeRecord[], previousOffset: number): TimeRecord[] {
  let last = previousOffset
  const end = slots.findIndex((record) => {
    if (!isValid(record) || record.offset <= last) return true
    last = record.offset
    return false
  })
  return end === -1 ? [...slots] : slots.slice(0, end)
}

export type SortedRecords = {
  /** Oldest first. */
  records: TimeRecord[]
  /** The slot of the next record. */
  nextSlot: number
}

/**
 * Reads the whole ring buffer. Records before a damaged one are omitted, because they would give output a time that is too
 * early. null when the file does not exist.
 */
export function readSortedRecords(path: string): SortedRecords | null {
  const slots = readRecords(path, 0, MAX_TIME_RECORDS)
  if (slots === null) return null
  let newest = -1
  for (const [slot, record] of slots.entries())
    if (isValid(record) && record.offset > (slots[newest]?.offset ?? -1)) newest = slot
  const records: TimeRecord[] = []
  for (let count = 0; count < slots.length; count++) {
    // Negative slots are at the end of a full buffer.
    const record = slots.length < MAX_TIME_RECORDS ? slots[newest - count] : slots.at(newest - count)
    const nextOffset = records.at(-1)?.offset ?? Number.POSITIVE_INFINITY
    if (record === undefined || !isValid(record) || record.offset >= nextOffset) break
    records.push(record)
  }
  return { records: records.reverse(), nextSlot: (newest + 1) % MAX_TIME_RECORDS }
}
