// Spool of reports on the box's disk: appended, read by cursors, deleted after the coordinator has committed them.
import { truncateSync } from 'node:fs'
import { mkdir, readdir, unlink } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { DurableReport, ReportAck } from '../../shared/api/reports.ts'
import { newUuid } from '../../shared/ids.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import type { AgentState, StateFile } from '../state.ts'
import { createReserve } from './reserve.ts'
import { createSegment, parseSegmentName, readLines, recoverSegment, type Segment } from './segment.ts'
import { openSpoolFile, type SpoolFile } from './spool-file.ts'
import { createSpoolNotifier } from './spool-notifier.ts'

export type SpoolOptions = {
  dir: string
  stateFile: StateFile
  log: Logger
  /** Maximum size of the spool; beyond it the oldest segment is evicted. Default: 64 MiB. */
  maxBytes?: number
  /** A new segment is started after this size. Default: 1 MiB. */
  segmentBytes?: number
}

/** A read position: the first sequence number of a segment, and the offset in its file. */
export type Cursor = { firstSeq: number; offset: number }
export const START_CURSOR: Cursor = { firstSeq: 0, offset: 0 }

export type Spool = {
  /** The epoch of new reports. Reports of earlier epochs may still be stored; numbers increase across epochs. */
  readonly epoch: string
  /** Resolves when the report is on disk. Rejects when it cannot be stored (disk full, report too long, spool closed). */
  append(report: DurableReport): Promise<void>
  /**
   * Appends without a sync: the report survives a kill of the agent, but not always a power failure. Readers are notified
   * after a short delay, so that several reports are sent together. Throws when the report cannot be stored.
   */
  appendUnsynced(report: DurableReport): void
  /**
   * Like appendUnsynced, for reports that command reports come before. False: the report was dropped, because the
   * spool is half full or the disk is full. Never writes into the reserve.
   */
  appendOptional(report: DurableReport): boolean
  /** Bytes that are not acknowledged yet. */
  pendingBytes(): number
  /** Writers of optional reports should wait while pendingBytes() is above this. */
  readonly highWaterMark: number
  /** Resolves when pendingBytes() is at most `highWaterMark`. Rejects when the signal aborts. */
  waitForSpace(signal: AbortSignal): Promise<void>
  /** Resolves when all reports appended so far are acknowledged. Rejects when the signal aborts. */
  waitForAcknowledgement(signal: AbortSignal): Promise<void>
  /** Lines (see reportLineSchema) after the cursor, and the cursor after them. Null when there are none yet. */
  read(cursor: Cursor): Promise<{ lines: Buffer; next: Cursor } | null>
  /** Resolves after the next append, with a short delay for an unsynced one. Rejects when the signal aborts. */
  waitForReport(signal: AbortSignal): Promise<void>
  /** Discards reports up to the number. Resolves to false when the acknowledgement is for another spool. */
  acknowledge(ack: ReportAck): Promise<boolean>
  close(): Promise<void>
}

const MiB = 1024 * 1024
/** A few long lines, or hundreds of short ones. */
const READ_BYTES = 256 * 1024
/**
 * The last segment is deleted only when it is larger than this. Otherwise creating a file, deleting it and updating the
 * state file for every few reports would be most of the spool's disk I/O. After a kill, up to this many bytes of
 * acknowledged reports are sent again; the coordinator ignores duplicates.
 */
const MIN_DELETE_BYTES = 64 * 1024
/**
 * Sequence numbers that the spool skips when it is opened again: more than the number of reports that can be missing from
 * its end without a trace. The coordinator would ignore a new report with the number of a report that it has received.
 */
const SKIPPED_NUMBERS = 1_000_000

/** Twice the size of eight concurrent commands with 1 MiB of each stream, base64-encoded. */
const MAX_BYTES = 64 * MiB

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const { dir, stateFile, log, maxBytes = MAX_BYTES, segmentBytes = MiB } = options
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const { segments, damaged } = await recoverSegments(dir, stateFile.data.ackedSeq, log)
  // A new epoch makes the recorders report again what the damaged part may have contained.
  if (damaged) await updateState({ epoch: newUuid() })
  const { epoch } = stateFile.data
  const reserve = createReserve(`${dir}.reserve`, segmentBytes)
  await reserve
    .create()
    .catch((err: unknown) => log.warn({ err }, 'failed to reserve disk space for reports'))
  const notifier = createSpoolNotifier()
  const lastStoredSeq = Math.max(stateFile.data.ackedSeq, segments.at(-1)?.lastSeq ?? 0)
  let lastSeq = stateFile.isNew ? lastStoredSeq : lastStoredSeq + SKIPPED_NUMBERS
  const highWaterMark = maxBytes / 2
  let pendingBytes = segments.reduce((sum, segment) => sum + segment.bytes, 0)
  let ackedSeq = stateFile.data.ackedSeq
  /** The open file of the last segment. */
  let file: SpoolFile | null = null
  let closed = false
  // Acknowledge, evict and close run one at a time. Appending is synchronous and needs no lock.
  let lastTask: Promise<unknown> = Promise.resolve()
  const runExclusive = <T>(task: () => Promise<T>): Promise<T> => {
    const result = lastTask.then(task)
    lastTask = result.catch(() => undefined)
    return result
  }

  /** Logs an error: reports can be sent and acknowledged on a full disk. */
  async function updateState(change: Partial<AgentState>): Promise<void> {
    await stateFile
      .update(change)
      .catch((err: unknown) => log.error({ err }, 'failed to write the state file; continuing without'))
  }

  function closeFile(): void {
    file?.close()
    file = null
  }

  /** The segment to append to, with its file. */
  function openActiveSegment(): { segment: Segment; openFile: SpoolFile } {
    const last = segments.at(-1)
    if (last !== undefined && file !== null && last.bytes < segmentBytes)
      return { segment: last, openFile: file }
    // A later report must not reach the disk before an earlier one.
    file?.sync().catch((err: unknown) => log.error({ err }, 'failed to sync a spool segment'))
    closeFile()
    const segment = createSegment(dir, epoch, lastSeq + 1)
    file = openSpoolFile(segment.path, 'w')
    segments.push(segment)
    return { segment, openFile: file }
  }

  /** Continues in a new segment, whose file is the reserve. Returns undefined when there is no reserve. */
  function openReserveSegment(): { segment: Segment; openFile: SpoolFile } | undefined {
    const segment = { ...createSegment(dir, epoch, lastSeq + 1), isReserve: true }
    const last = segments.at(-1)
    if (!reserve.use(segment.path)) return undefined
    log.warn({ path: segment.path }, 'the disk is full; using the reserve of the spool')
    // Remove a partial line, which would look like damage.
    if (last !== undefined && file !== null && last.bytes > 0) truncateSync(last.path, last.bytes)
    // The reserve has replaced the file of an empty segment.
    if (last?.bytes === 0) segments.pop()
    closeFile()
    const openFile = openSpoolFile(segment.path, 'r+')
    file = openFile
    segments.push(segment)
    return { segment, openFile }
  }

  function writeLine(line: Buffer, mayUseReserve: boolean): { segment: Segment; openFile: SpoolFile } {
    try {
      const active = openActiveSegment()
      // After a partial write `segment.bytes` is unchanged: readers ignore the partial line and the next write replaces it.
      active.openFile.write(line, active.segment.bytes)
      return active
    } catch (error) {
      const active = mayUseReserve && isDiskFull(error) ? openReserveSegment() : undefined
      if (active === undefined) throw error
      active.openFile.write(line, active.segment.bytes)
      return active
    }
  }

  async function removeSegment(segment: Segment): Promise<void> {
    segments.splice(segments.indexOf(segment), 1)
    pendingBytes -= segment.bytes - segment.acked
    if (segment.isReserve && (await reserve.restore(segment.path, segment.bytes))) return
    await unlink(segment.path)
  }

  /** Deletes acknowledged segments, except an open last segment of up to `minDeleteBytes`. */
  async function deleteAcknowledged(minDeleteBytes: number): Promise<void> {
    const last = segments.at(-1)
    const acknowledged = segments.filter(({ lastSeq }) => lastSeq <= ackedSeq)
    // The reserve becomes free for the next report on a full disk.
    const keepsLast = last !== undefined && file !== null && !last.isReserve && last.bytes <= minDeleteBytes
    if (keepsLast && acknowledged.includes(last)) {
      acknowledged.pop()
      pendingBytes -= last.bytes - last.acked
      last.acked = last.bytes
    }
    if (acknowledged.length === 0) return
    // Reports that are appended from now on go to a new segment.
    if (last !== undefined && acknowledged.includes(last)) closeFile()
    // Store the number before deleting the files: a crash in between must not cause numbers to be assigned twice.
    await updateState({ ackedSeq })
    for (const segment of acknowledged) await removeSegment(segment)
  }

  async function evictOldest(): Promise<void> {
    for (const segment of segments.slice(0, -1)) {
      if (pendingBytes <= maxBytes) return
      const dropped = segment.lastSeq - segment.firstSeq + 1
      log.error(
        { dropped, from: segment.firstSeq, to: segment.lastSeq },
        'spool is full; discarded the oldest reports',
      )
      await removeSegment(segment)
    }
  }

  /** Writes the report to the page cache and returns the file, so that the caller can sync it. */
  function writeReport(report: DurableReport, mayUseReserve = true): SpoolFile {
    if (closed) throw new Error('the spool is closed')
    const text = JSON.stringify(report)
    const line = Buffer.from(`{"type":"report","epoch":"${epoch}","seq":${lastSeq + 1},"report":${text}}\n`)
    if (line.length > TUNNEL_LIMITS.reportBytes) {
      throw new Error(`a report of type ${report.type} is too long`)
    }
    const { segment, openFile } = writeLine(line, mayUseReserve)
    segment.bytes += line.length
    pendingBytes += line.length
    lastSeq += 1
    segment.lastSeq = lastSeq
    if (pendingBytes > maxBytes) {
      runExclusive(evictOldest).catch((err: unknown) =>
        log.error({ err }, 'failed to discard the oldest reports'),
      )
    }
    return openFile
  }

  return {
    epoch,
    highWaterMark,
    async append(report) {
      await writeReport(report).sync()
      notifier.notifyAppended(true)
    },
    appendUnsynced(report) {
      writeReport(report)
      notifier.notifyAppended(false)
    },
    appendOptional(report) {
      if (pendingBytes > highWaterMark || segments.at(-1)?.isReserve) return false
      try {
        writeReport(report, false)
      } catch (error) {
        if (isDiskFull(error)) return false
        throw error
      }
      notifier.notifyAppended(false)
      return true
    },
    pendingBytes: () => pendingBytes,
    waitForSpace: (signal) => notifier.waitForSpace(signal, () => pendingBytes <= highWaterMark),
    waitForAcknowledgement(signal) {
      const appendedSeq = lastSeq
      return notifier.waitForSpace(signal, () => ackedSeq >= appendedSeq || pendingBytes === 0)
    },
    async read(cursor) {
      for (const segment of [...segments]) {
        if (segment.firstSeq < cursor.firstSeq) continue
        const offset = Math.max(segment.acked, segment.firstSeq === cursor.firstSeq ? cursor.offset : 0)
        if (offset >= segment.bytes) continue
        const lines = await readLines(segment, offset, READ_BYTES)
        // The segment was acknowledged or evicted during the read.
        if (lines === null || lines.length === 0) continue
        return { lines, next: { firstSeq: segment.firstSeq, offset: offset + lines.length } }
      }
      return null
    },
    waitForReport: notifier.waitForReport,
    acknowledge: (ack) =>
      runExclusive(async () => {
        const isKnownEpoch = ack.epoch === epoch || segments.some((segment) => segment.epoch === ack.epoch)
        if (!isKnownEpoch || ack.seq > lastSeq) return false
        if (ack.seq <= ackedSeq) return true
        ackedSeq = ack.seq
        await deleteAcknowledged(MIN_DELETE_BYTES)
        notifier.notifySpace()
        return true
      }),
    close: () =>
      runExclusive(async () => {
        closed = true
        // Otherwise the next agent process would send these reports again.
        await deleteAcknowledged(0).catch((err: unknown) =>
          log.error({ err }, 'failed to delete acknowledged reports'),
        )
        closeFile()
      }),
  }
}

const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')

async function recoverSegments(
  dir: string,
  ackedSeq: number,
  log: Logger,
): Promise<{ segments: Segment[]; damaged: boolean }> {
  const segments: Segment[] = []
  let damaged = false
  const numbers = (await readdir(dir)).map(parseSegmentName).filter((number) => number !== null)
  for (const number of numbers.sort((a, b) => a - b)) {
    const { segment, damaged: isDamaged } = await recoverSegment(dir, number)
    if (isDamaged) {
      log.error({ path: segment.path }, 'a spool segment is damaged; starting a new epoch')
      damaged = true
    }
    // The agent may have been killed before it deleted an acknowledged segment.
    if (segment.bytes > 0 && segment.lastSeq > ackedSeq) segments.push(segment)
    else await unlink(segment.path)
  }
  return { segments, damaged }
}
