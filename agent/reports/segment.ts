// One file of the spool: report lines with consecutive sequence numbers. The file name is the first number.
import { open, readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { formatSegmentName } from '../../shared/report-spool.ts'

export type Segment = {
  readonly path: string
  /** The epoch of all its reports. */
  readonly epoch: string
  readonly firstSeq: number
  /** firstSeq - 1 while empty. */
  lastSeq: number
  /** Length of the complete lines. Anything after it in the file is ignored. */
  bytes: number
  /** Whether the file is the reserve (reserve.ts): larger than `bytes`, and filled with zeros. */
  isReserve: boolean
  /** How many of these bytes are acknowledged. 0 except in the last segment: other acknowledged segments are deleted. */
  acked: number
}

const NEWLINE = 10

export function createSegment(dir: string, epoch: string, firstSeq: number): Segment {
  const path = join(dir, formatSegmentName(firstSeq))
  return { path, epoch, firstSeq, lastSeq: firstSeq - 1, bytes: 0, isReserve: false, acked: 0 }
}

/**
 * Reads a segment file and truncates it before the first line that is incomplete, not JSON, or not the next number of the
 * first line's epoch. Such lines are left by a kill or a power failure during a write, or by damage to the file.
 * @returns the segment, which is empty when no line is valid, and whether it is damaged: zeros after the last line are not
 * damage, but the unused part of a reserve
 */
export async function recoverSegment(
  dir: string,
  firstSeq: number,
): Promise<{ segment: Segment; damaged: boolean }> {
  let segment = createSegment(dir, '', firstSeq)
  const content = await readFile(segment.path)
  for (;;) {
    const newline = content.indexOf(NEWLINE, segment.bytes)
    if (newline === -1) break
    const line = parseLine(content.toString('utf8', segment.bytes, newline))
    if (line === null || line.seq !== segment.lastSeq + 1) break
    if (segment.bytes === 0) segment = createSegment(dir, line.epoch, firstSeq)
    else if (line.epoch !== segment.epoch) break
    segment.lastSeq = line.seq
    segment.bytes = newline + 1
  }
  const rest = content.subarray(segment.bytes)
  if (rest.length > 0) await truncate(segment.path, segment.bytes)
  return { segment, damaged: segment.bytes === 0 || rest.some((byte) => byte !== 0) }
}

function parseLine(text: string): { epoch: string; seq: number } | null {
  try {
    const { epoch, seq } = JSON.parse(text) ?? {}
    return typeof epoch === 'string' && typeof seq === 'number' ? { epoch, seq } : null
  } catch {
    return null
  }
}

/**
 * Reads complete lines from `offset`: up to `maxBytes`, or a single line if the first is longer. Null when the file was
 * deleted, empty when it has no complete line there.
 */
export async function readLines(segment: Segment, offset: number, maxBytes: number): Promise<Buffer | null> {
  const handle = await open(segment.path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (handle === null) return null
  try {
    for (let size = maxBytes; ; size *= 2) {
      const length = Math.min(size, segment.bytes - offset)
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset)
      const end = buffer.lastIndexOf(NEWLINE, bytesRead - 1)
      if (bytesRead > 0 && end !== -1) return buffer.subarray(0, end + 1)
      if (length < size) return Buffer.alloc(0)
    }
  } finally {
    await handle.close()
  }
}
