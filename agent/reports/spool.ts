// Spool of reports on the box's disk: appended, read by cursors, deleted after the coordinator has committed them.
import { mkdir } from 'node:fs/promises'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import type { ReportAck } from '../../shared/api/next-reports.ts'
import type { DurableReport } from '../../shared/api/reports.ts'
import { newUuid } from '../../shared/ids.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { SPOOL_BYTES, SPOOL_SEGMENT_BYTES } from '../../shared/report-spool.ts'
import type { AgentState, StateFile } from '../state.ts'
import { createReserve, isDiskFull } from './reserve.ts'
import { type Cursor, recoverSegments, Segments } from './segments.ts'
import type { SpoolFile } from './spool-file.ts'
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

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const { dir, stateFile, log, maxBytes = SPOOL_BYTES, segmentBytes = SPOOL_SEGMENT_BYTES } = options
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const { segments: recovered, damaged } = await recoverSegments(dir, stateFile.data.ackedSeq, log)
  // A new epoch makes the recorders report again what the damaged part may have contained.
  if (damaged) await updateState(stateFile, { epoch: newUuid() }, log)
  const { epoch, ackedSeq } = stateFile.data
  const reserve = createReserve(`${dir}.reserve`, segmentBytes)
  await reserve
    .create()
    .catch((err: unknown) => log.warn({ err }, 'failed to reserve disk space for reports'))
  const lastStoredSeq = Math.max(ackedSeq, recovered.at(-1)?.lastSeq ?? 0)
  const lastSeq = stateFile.isNew ? lastStoredSeq : lastStoredSeq + SKIPPED_NUMBERS
  const segments = new Segments({ dir, epoch, recovered, segmentBytes, reserve, log })
  return new ReportSpool({ epoch, ackedSeq, lastSeq, segments, maxBytes, stateFile, log })
}

type ReportSpoolOptions = {
  epoch: string
  ackedSeq: number
  /** The sequence number before that of the first new report. */
  lastSeq: number
  segments: Segments
  maxBytes: number
  stateFile: StateFile
  log: Logger
}

class ReportSpool implements Spool {
  readonly epoch: string
  readonly highWaterMark: number
  readonly #options: ReportSpoolOptions
  readonly #segments: Segments
  readonly #notifier = createSpoolNotifier()
  /** Acknowledge, evict and close run one at a time. Appending is synchronous and needs no lock. */
  readonly #runExclusive = pLimit(1)
  #lastSeq: number
  #ackedSeq: number
  #isClosed = false

  constructor(options: ReportSpoolOptions) {
    this.epoch = options.epoch
    this.highWaterMark = options.maxBytes / 2
    this.#options = options
    this.#segments = options.segments
    this.#lastSeq = options.lastSeq
    this.#ackedSeq = options.ackedSeq
  }

  async append(report: DurableReport): Promise<void> {
    await this.#write(report).sync()
    this.#notifier.notifyAppended(true)
  }

  appendUnsynced(report: DurableReport): void {
    this.#write(report)
    this.#notifier.notifyAppended(false)
  }

  appendOptional(report: DurableReport): boolean {
    if (this.pendingBytes() > this.highWaterMark || this.#segments.isUsingReserve) return false
    try {
      this.#write(report, { mayUseReserve: false })
    } catch (error) {
      if (isDiskFull(error)) return false
      throw error
    }
    this.#notifier.notifyAppended(false)
    return true
  }

  pendingBytes(): number {
    return this.#segments.pendingBytes
  }

  waitForSpace(signal: AbortSignal): Promise<void> {
    return this.#notifier.waitForSpace(signal, () => this.pendingBytes() <= this.highWaterMark)
  }

  waitForAcknowledgement(signal: AbortSignal): Promise<void> {
    const appendedSeq = this.#lastSeq
    return this.#notifier.waitForSpace(
      signal,
      () => this.#ackedSeq >= appendedSeq || this.pendingBytes() === 0,
    )
  }

  read(cursor: Cursor): Promise<{ lines: Buffer; next: Cursor } | null> {
    return this.#segments.read(cursor)
  }

  waitForReport(signal: AbortSignal): Promise<void> {
    return this.#notifier.waitForReport(signal)
  }

  acknowledge({ epoch, seq }: ReportAck): Promise<boolean> {
    return this.#runExclusive(async () => {
      const isKnownEpoch = epoch === this.epoch || this.#segments.hasEpoch(epoch)
      if (!isKnownEpoch || seq > this.#lastSeq) return false
      if (seq <= this.#ackedSeq) return true
      this.#ackedSeq = seq
      await this.#deleteAcknowledged(MIN_DELETE_BYTES)
      this.#notifier.notifySpace()
      return true
    })
  }

  close(): Promise<void> {
    return this.#runExclusive(async () => {
      this.#isClosed = true
      // Otherwise the next agent process would send these reports again.
      await this.#deleteAcknowledged(0).catch((err: unknown) =>
        this.#options.log.error({ err }, 'failed to delete acknowledged reports'),
      )
      this.#segments.close()
    })
  }

  /** Writes the report to the page cache and returns the file, so that the caller can sync it. */
  #write(report: DurableReport, { mayUseReserve = true } = {}): SpoolFile {
    if (this.#isClosed) throw new Error('the spool is closed')
    const { maxBytes, log } = this.#options
    const seq = this.#lastSeq + 1
    const text = JSON.stringify(report)
    const line = Buffer.from(`{"type":"report","epoch":"${this.epoch}","seq":${seq},"report":${text}}\n`)
    if (line.length > TUNNEL_LIMITS.reportBytes)
      throw new Error(`a report of type ${report.type} is too long`)
    const file = this.#segments.append(line, seq, { mayUseReserve })
    this.#lastSeq = seq
    if (this.pendingBytes() > maxBytes) {
      this.#runExclusive(() => this.#evictOldest()).catch((err: unknown) =>
        log.error({ err }, 'failed to discard the oldest reports'),
      )
    }
    return file
  }

  /** @param minDeleteBytes see MIN_DELETE_BYTES */
  async #deleteAcknowledged(minDeleteBytes: number): Promise<void> {
    const { stateFile, log } = this.#options
    const acknowledged = this.#segments.acknowledge(this.#ackedSeq, minDeleteBytes)
    if (acknowledged.length === 0) return
    // Store the number before deleting the files: a crash in between must not cause numbers to be assigned twice.
    await updateState(stateFile, { ackedSeq: this.#ackedSeq }, log)
    for (const segment of acknowledged) await this.#segments.remove(segment)
  }

  async #evictOldest(): Promise<void> {
    const { maxBytes, log } = this.#options
    for (const segment of this.#segments.listEvictable()) {
      if (this.pendingBytes() <= maxBytes) return
      const dropped = segment.lastSeq - segment.firstSeq + 1
      log.error(
        { dropped, from: segment.firstSeq, to: segment.lastSeq },
        'spool is full; discarded the oldest reports',
      )
      await this.#segments.remove(segment)
    }
  }
}

/** Logs an error: reports can be sent and acknowledged on a full disk. */
async function updateState(stateFile: StateFile, change: Partial<AgentState>, log: Logger): Promise<void> {
  await stateFile
    .update(change)
    .catch((err: unknown) => log.error({ err }, 'failed to write the state file; continuing without'))
}
