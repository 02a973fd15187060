// Reports on the box's disk until the coordinator has committed them: appended, read by cursors, deleted on ack.
import { mkdir, readdir, unlink } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { DurableReport, ReportAck } from '../../shared/api/reports.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import type { StateFile } from '../state.ts'
import { openFile, type SpoolFile } from './file.ts'
import { createNews } from './news.ts'
import { newSegment, readLines, recoverSegment, type Segment, segmentNumber } from './segment.ts'

export type SpoolOptions = {
  folder: string
  state: StateFile
  log: Logger
  /** Of this boot of the machine. After another boot, numbers that a power cut may have swallowed are passed over. */
  bootId?: string
  /** The most the spool holds: beyond it the oldest segment is given up. */
  maxBytes?: number
  segmentBytes?: number
}

/** A reader's place: the number of a segment's first report, and the bytes of it already read. */
export type Cursor = { firstSeq: number; offset: number }
export const START: Cursor = { firstSeq: 0, offset: 0 }

export type Spool = {
  readonly epoch: string
  /** Resolves when the report is on the disk. Rejects when it cannot be kept (disk full, too long, closed). */
  append(report: DurableReport): Promise<void>
  /**
   * The cheap way: in the page cache when it returns, which a killed agent survives and a power cut may not, and told
   * a little later, together with what else comes. Throws when it cannot be kept.
   */
  note(report: DurableReport): void
  /** Bytes that wait for their acknowledgement. */
  size(): number
  /** What is not worth a report's place is held back above this size. */
  readonly roomBytes: number
  /** Resolves when there is room, now or after an acknowledgement; rejects when the signal aborts. */
  room(signal: AbortSignal): Promise<void>
  /** Lines (see reportLine) after the cursor, and the cursor after them; null when there are none now. */
  read(cursor: Cursor): Promise<{ lines: Buffer; next: Cursor } | null>
  /** Resolves after the next report, after a noted one a little later; rejects when the signal aborts. */
  appended(signal: AbortSignal): Promise<void>
  /** Forgets reports up to the number; false when the acknowledgement is for another spool. */
  acknowledge(ack: ReportAck): Promise<boolean>
  close(): Promise<void>
}

const MiB = 1024 * 1024
/** A few long lines, or hundreds of short ones. */
const READ_BYTES = 256 * 1024
/**
 * The file that is written to is deleted only beyond this: one made, one deleted and a number remembered for every few
 * reports is most of what a spool asks of a disk. After a kill as much is told again, which the coordinator takes once.
 */
const KEPT_BYTES = 64 * 1024
/** Above all that could have been written in the last seconds before a power cut. */
const PASSED_OVER = 1_000_000

/** Eight commands at once with 1 MiB of each stream, as base64, have room twice over. */
const MAX_BYTES = 64 * MiB

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const { folder, state, log, bootId, maxBytes = MAX_BYTES, segmentBytes = MiB } = options
  const { epoch } = state.data
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const segments = await recover(folder, epoch, log)
  const news = createNews()
  let lastSeq = Math.max(state.data.ackedSeq, segments.at(-1)?.lastSeq ?? 0)
  if (bootId !== undefined && bootId !== state.data.bootId) {
    if (state.data.bootId !== undefined) lastSeq += PASSED_OVER
    await state.update({ bootId })
  }
  const roomBytes = maxBytes / 2
  let size = segments.reduce((sum, segment) => sum + segment.bytes, 0)
  let acked = state.data.ackedSeq
  /** Of the last segment. */
  let file: SpoolFile | null = null
  let closed = false
  // Acknowledging, giving up and closing take turns. Appending needs none: it is done when it returns.
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work)
    turn = result.catch(() => undefined)
    return result
  }

  function closeFile(): void {
    file?.close()
    file = null
  }

  /** The segment to append to, with its file. */
  function active(): { segment: Segment; open: SpoolFile } {
    const last = segments.at(-1)
    if (last !== undefined && file !== null && last.bytes < segmentBytes) return { segment: last, open: file }
    // What follows must not be on the disk without what came before.
    file?.sync().catch((err: unknown) => log.error({ err }, 'a part of the spool could not be synced'))
    closeFile()
    const segment = newSegment(folder, lastSeq + 1)
    file = openFile(segment.path)
    segments.push(segment)
    return { segment, open: file }
  }

  async function remove(segment: Segment): Promise<void> {
    segments.splice(segments.indexOf(segment), 1)
    size -= segment.bytes - segment.acked
    await unlink(segment.path)
  }

  /** Deletes what is acknowledged, but for a last segment of up to `kept` bytes. */
  async function forget(kept: number): Promise<void> {
    const last = segments.at(-1)
    const done = segments.filter(({ lastSeq }) => lastSeq <= acked)
    if (last !== undefined && file !== null && done.includes(last) && last.bytes <= kept) {
      done.pop()
      size -= last.bytes - last.acked
      last.acked = last.bytes
    }
    if (done.length === 0) return
    // First remembered, then deleted: else numbers could be given out twice.
    await state.update({ ackedSeq: acked })
    for (const segment of done) {
      if (segment === segments.at(-1)) closeFile()
      await remove(segment)
    }
  }

  async function dropOldest(): Promise<void> {
    for (const segment of segments.slice(0, -1)) {
      if (size <= maxBytes) return
      const dropped = segment.lastSeq - segment.firstSeq + 1
      log.error(
        { dropped, from: segment.firstSeq, to: segment.lastSeq },
        'reports given up: the spool is full',
      )
      await remove(segment)
    }
  }

  /** In the page cache when it returns. */
  function write(report: DurableReport): SpoolFile {
    if (closed) throw new Error('the spool is closed')
    const text = JSON.stringify(report)
    const line = Buffer.from(`{"type":"report","epoch":"${epoch}","seq":${lastSeq + 1},"report":${text}}\n`)
    if (line.length > TUNNEL_LIMITS.reportBytes) {
      throw new Error(`a report of type ${report.type} is too long`)
    }
    const { segment, open } = active()
    // Half written when it fails: that lies behind segment.bytes, where the next one goes and no reader looks.
    open.write(line, segment.bytes)
    segment.bytes += line.length
    size += line.length
    lastSeq += 1
    segment.lastSeq = lastSeq
    if (size > maxBytes) inTurn(dropOldest).catch((err: unknown) => log.error({ err }, 'the spool is stuck'))
    return open
  }

  return {
    epoch,
    roomBytes,
    async append(report) {
      await write(report).sync()
      news.tellAppended(true)
    },
    note(report) {
      write(report)
      news.tellAppended(false)
    },
    size: () => size,
    room: (signal) => news.room(signal, () => size <= roomBytes),
    async read(cursor) {
      for (const segment of [...segments]) {
        if (segment.firstSeq < cursor.firstSeq) continue
        const offset = Math.max(segment.acked, segment.firstSeq === cursor.firstSeq ? cursor.offset : 0)
        if (offset >= segment.bytes) continue
        const lines = await readLines(segment, offset, READ_BYTES)
        // Acknowledged or given up while we looked.
        if (lines === null || lines.length === 0) continue
        return { lines, next: { firstSeq: segment.firstSeq, offset: offset + lines.length } }
      }
      return null
    },
    appended: news.appended,
    acknowledge: (ack) =>
      inTurn(async () => {
        if (ack.epoch !== epoch || ack.seq > lastSeq) return false
        if (ack.seq <= acked) return true
        acked = ack.seq
        await forget(KEPT_BYTES)
        if (size <= roomBytes) news.tellRoom()
        return true
      }),
    close: () =>
      inTurn(async () => {
        closed = true
        // Else the next agent tells it again.
        await forget(0).catch((err: unknown) =>
          log.error({ err }, 'what is acknowledged could not be deleted'),
        )
        closeFile()
      }),
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
