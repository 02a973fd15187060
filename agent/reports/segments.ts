// The segments of the spool on disk: writes to the last one, reads, acknowledges and removes them.
import { truncateSync } from 'node:fs'
import { readdir, unlink } from 'node:fs/promises'
import type { Logger } from 'pino'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { parseSegmentName } from '../../shared/report-spool.ts'
import { isDiskFull, type Reserve } from './reserve.ts'
import { createSegment, readLines, recoverSegment, type Segment } from './segment.ts'
import { openSpoolFile, type SpoolFile } from './spool-file.ts'

export type SegmentsOptions = {
  dir: string
  /** The epoch of new segments. */
  epoch: string
  /** The segments of earlier agents, oldest first. */
  recovered: Segment[]
  /** A new segment is started after this size. */
  segmentBytes: number
  reserve: Pick<Reserve, 'use' | 'restore'>
  log: Logger
}

/** A read position: the first sequence number of a segment, and the offset in its file. */
export type Cursor = { firstSeq: number; offset: number }

/** The segment that lines are appended to, with its file. */
type Active = { segment: Segment; file: SpoolFile }

/** Fits into a message of the tunnel. A longer line is read completely. */
const READ_BYTES = TUNNEL_LIMITS.messageBytes

export class Segments {
  readonly #options: SegmentsOptions
  /** Oldest first. */
  readonly #segments: Segment[]
  /** The open file of the last segment. */
  #file: SpoolFile | null = null
  #pendingBytes: number

  constructor(options: SegmentsOptions) {
    this.#options = options
    this.#segments = options.recovered
    this.#pendingBytes = options.recovered.reduce((sum, segment) => sum + segment.bytes, 0)
  }

  /** Bytes that are not acknowledged yet. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** Whether the reports are written into the reserve, because the disk is full. */
  get isUsingReserve(): boolean {
    return this.#segments.at(-1)?.isReserve === true
  }

  hasEpoch(epoch: string): boolean {
    return this.#segments.some((segment) => segment.epoch === epoch)
  }

  /**
   * Writes a line to the page cache. Returns the file, which the caller may sync.
   * @param seq the sequence number of the line, higher than all earlier ones
   * @throws system errors: the line is not stored
   */
  append(line: Buffer, seq: number, { mayUseReserve }: { mayUseReserve: boolean }): SpoolFile {
    const { segment, file } = this.#write(line, seq, mayUseReserve)
    segment.bytes += line.length
    segment.lastSeq = seq
    this.#pendingBytes += line.length
    return file
  }

  /** Returns lines after the cursor, and the cursor after them. Null when there are none. */
  async read(cursor: Cursor): Promise<{ lines: Buffer; next: Cursor } | null> {
    for (const segment of [...this.#segments]) {
      if (segment.firstSeq < cursor.firstSeq) continue
      const offset = Math.max(segment.acked, segment.firstSeq === cursor.firstSeq ? cursor.offset : 0)
      if (offset >= segment.bytes) continue
      const lines = await readLines(segment, offset, READ_BYTES)
      // The segment was acknowledged or evicted during the read.
      if (lines === null || lines.length === 0) continue
      return { lines, next: { firstSeq: segment.firstSeq, offset: offset + lines.length } }
    }
    return null
  }

  /**
   * Returns the segments to remove after an acknowledgement. An open last segment of up to `minDeleteBytes` is kept.
   * Reports that are appended from now on do not go to the returned segments.
   */
  acknowledge(ackedSeq: number, minDeleteBytes: number): Segment[] {
    const last = this.#segments.at(-1)
    const acknowledged = this.#segments.filter(({ lastSeq }) => lastSeq <= ackedSeq)
    if (last === undefined || !acknowledged.includes(last)) return acknowledged
    // The reserve becomes free for the next report on a full disk.
    if (this.#file !== null && !last.isReserve && last.bytes <= minDeleteBytes) {
      acknowledged.pop()
      this.#pendingBytes -= last.bytes - last.acked
      last.acked = last.bytes
    } else this.close()
    return acknowledged
  }

  /** The segments that can be evicted, oldest first: all except the last one. */
  listEvictable(): Segment[] {
    return this.#segments.slice(0, -1)
  }

  async remove(segment: Segment): Promise<void> {
    this.#segments.splice(this.#segments.indexOf(segment), 1)
    this.#pendingBytes -= segment.bytes - segment.acked
    if (segment.isReserve && (await this.#options.reserve.restore(segment.path, segment.bytes))) return
    await unlink(segment.path)
  }

  /** Closes the file. A later append starts a new segment. */
  close(): void {
    this.#file?.close()
    this.#file = null
  }

  #write(line: Buffer, seq: number, mayUseReserve: boolean): Active {
    try {
      const active = this.#openActive(seq)
      // After a partial write `segment.bytes` is unchanged: readers ignore the partial line and the next write replaces it.
      active.file.write(line, active.segment.bytes)
      return active
    } catch (error) {
      const active = mayUseReserve && isDiskFull(error) ? this.#openReserve(seq) : undefined
      if (active === undefined) throw error
      active.file.write(line, active.segment.bytes)
      return active
    }
  }

  #openActive(seq: number): Active {
    const { dir, epoch, segmentBytes, log } = this.#options
    const last = this.#segments.at(-1)
    if (last !== undefined && this.#file !== null && last.bytes < segmentBytes)
      return { segment: last, file: this.#file }
    // A later report must not reach the disk before an earlier one.
    this.#file?.sync().catch((err: unknown) => log.error({ err }, 'failed to sync a spool segment'))
    this.close()
    const segment = createSegment(dir, epoch, seq)
    this.#file = openSpoolFile(segment.path, 'w')
    this.#segments.push(segment)
    return { segment, file: this.#file }
  }

  /** Continues in a new segment, whose file is the reserve. Returns undefined when there is no reserve. */
  #openReserve(seq: number): Active | undefined {
    const { dir, epoch, reserve, log } = this.#options
    const segment = { ...createSegment(dir, epoch, seq), isReserve: true }
    const last = this.#segments.at(-1)
    if (!reserve.use(segment.path)) return undefined
    log.warn({ path: segment.path }, 'the disk is full; using the reserve of the spool')
    // Remove a partial line, which would look like damage.
    if (last !== undefined && this.#file !== null && last.bytes > 0) truncateSync(last.path, last.bytes)
    // The reserve has replaced the file of an empty segment.
    if (last?.bytes === 0) this.#segments.pop()
    this.close()
    this.#file = openSpoolFile(segment.path, 'r+')
    this.#segments.push(segment)
    return { segment, file: this.#file }
  }
}

/** Recovers the segments of earlier agents, oldest first, and deletes those that are empty or acknowledged. */
export async function recoverSegments(
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
