// Reports on the box's disk until the coordinator has committed them: appended, read by cursors, deleted on ack.
import { EventEmitter, once } from 'node:events'
import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { DurableReport, ReportAck } from '../../shared/api/reports.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import type { StateFile } from '../state.ts'
import { newSegment, readLines, recoverSegment, type Segment, segmentNumber } from './segment.ts'

export type SpoolOptions = {
  folder: string
  state: StateFile
  log: Logger
  /** The most the spool holds: beyond it the oldest segment is given up. */
  maxBytes?: number
  segmentBytes?: number
}

/** A reader's place: the number of a segment's first report, and the bytes of it already read. */
export type Cursor = { firstSeq: number; offset: number }
export const START: Cursor = { firstSeq: 0, offset: 0 }

export type Spool = {
  readonly epoch: string
  /** Resolves when the report is on the disk. Rejects when it cannot be kept (disk full, too long). */
  append(report: DurableReport): Promise<void>
  /** Lines (see reportLine) after the cursor, and the cursor after them; null when there are none now. */
  read(cursor: Cursor): Promise<{ lines: Buffer; next: Cursor } | null>
  /** Resolves at the next append; rejects when the signal aborts. */
  appended(signal: AbortSignal): Promise<unknown>
  /** Forgets reports up to the number; false when the acknowledgement is for another spool. */
  acknowledge(ack: ReportAck): Promise<boolean>
  close(): Promise<void>
}

const MiB = 1024 * 1024
const READ_BYTES = 64 * 1024

export async function openSpool({
  folder,
  state,
  log,
  maxBytes = 16 * MiB,
  segmentBytes = MiB,
}: SpoolOptions): Promise<Spool> {
  const { epoch } = state.data
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const segments = await recover(folder, epoch, log)
  const events = new EventEmitter().setMaxListeners(0)
  let lastSeq = Math.max(state.data.ackedSeq, segments.at(-1)?.lastSeq ?? 0)
  let file: FileHandle | null = null
  let pending: { report: DurableReport; kept(): void; failed(error: unknown): void }[] = []
  // Appending, acknowledging and closing take turns.
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work)
    turn = result.catch(() => undefined)
    return result
  }

  async function closeFile(): Promise<void> {
    const closing = file
    file = null
    await closing?.close()
  }

  /** The segment to append to, with `file` open on it. */
  async function activeSegment(): Promise<Segment> {
    const last = segments.at(-1)
    if (last !== undefined && file !== null && last.bytes < segmentBytes) return last
    await closeFile()
    const segment = newSegment(folder, lastSeq + 1)
    file = await open(segment.path, 'w', 0o600)
    segments.push(segment)
    return segment
  }

  async function remove(segment: Segment): Promise<void> {
    segments.splice(segments.indexOf(segment), 1)
    await unlink(segment.path)
  }

  async function dropOldest(): Promise<void> {
    let total = segments.reduce((sum, segment) => sum + segment.bytes, 0)
    for (const segment of segments.slice(0, -1)) {
      if (total <= maxBytes) return
      total -= segment.bytes
      const dropped = segment.lastSeq - segment.firstSeq + 1
      log.error(
        { dropped, from: segment.firstSeq, to: segment.lastSeq },
        'reports given up: the spool is full',
      )
      await remove(segment)
    }
  }

  /** Writes all that is pending with one sync for all of it. */
  async function flush(): Promise<void> {
    const batch = pending
    if (batch.length === 0) return
    pending = []
    try {
      const segment = await activeSegment()
      const lines = batch.map(({ report }, index) => toLine(epoch, lastSeq + 1 + index, report))
      const bytes = Buffer.from(lines.join(''))
      try {
        await writeAt(file, bytes, segment.bytes)
      } catch (error) {
        // The half-written rest lies behind segment.bytes, where the next write goes and no reader looks.
        if (segment.bytes === 0) await closeFile().then(() => remove(segment))
        throw error
      }
      segment.bytes += bytes.length
      lastSeq += batch.length
      segment.lastSeq = lastSeq
      await dropOldest()
    } catch (error) {
      for (const { failed } of batch) failed(error)
      return
    }
    for (const { kept } of batch) kept()
    events.emit('appended')
  }

  return {
    epoch,
    append(report) {
      if (Buffer.byteLength(JSON.stringify(report)) > TUNNEL_LIMITS.reportBytes - 256) {
        return Promise.reject(new Error(`a report of type ${report.type} is too long`))
      }
      return new Promise<void>((kept, failed) => {
        pending.push({ report, kept, failed })
        void inTurn(flush)
      })
    },
    async read(cursor) {
      for (const segment of [...segments]) {
        if (segment.firstSeq < cursor.firstSeq) continue
        const offset = segment.firstSeq === cursor.firstSeq ? cursor.offset : 0
        if (offset >= segment.bytes) continue
        const lines = await readLines(segment, offset, READ_BYTES)
        // Acknowledged or given up while we looked.
        if (lines === null || lines.length === 0) continue
        return { lines, next: { firstSeq: segment.firstSeq, offset: offset + lines.length } }
      }
      return null
    },
    appended: (signal) => once(events, 'appended', { signal }),
    acknowledge: (ack) =>
      inTurn(async () => {
        if (ack.epoch !== epoch || ack.seq > lastSeq) return false
        if (ack.seq <= state.data.ackedSeq) return true
        // First remembered, then deleted: else numbers could be given out twice.
        await state.update({ ackedSeq: ack.seq })
        for (const segment of [...segments]) {
          if (segment.lastSeq > ack.seq) break
          if (segment === segments.at(-1)) await closeFile()
          await remove(segment)
        }
        return true
      }),
    close: () => inTurn(closeFile),
  }
}

async function recover(folder: string, epoch: string, log: Logger): Promise<Segment[]> {
  const segments: Segment[] = []
  const numbers = (await readdir(folder)).map(segmentNumber).filter((number) => number !== null)
  for (const number of numbers.sort((a, b) => a - b)) {
    const segment = await recoverSegment(folder, number, epoch)
    if (segment.bytes > 0) {
      segments.push(segment)
      continue
    }
    log.warn({ path: segment.path }, 'a file of the spool holds no report of this epoch')
    await unlink(segment.path)
  }
  return segments
}

const toLine = (epoch: string, seq: number, report: DurableReport): string =>
  `${JSON.stringify({ type: 'report', epoch, seq, report })}\n`

async function writeAt(file: FileHandle | null, bytes: Buffer, position: number): Promise<void> {
  if (file === null) throw new Error('the spool is closed')
  for (let done = 0; done < bytes.length; ) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
  }
  await file.datasync()
}
