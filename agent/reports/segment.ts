// One file of the spool: a run of report lines with consecutive numbers, the first of them in the file's name.
import { open, readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'

export type Segment = {
  readonly path: string
  readonly firstSeq: number
  /** firstSeq - 1 while empty. */
  lastSeq: number
  /** Bytes that are on the disk for sure. Whatever lies behind them is not there. */
  bytes: number
  /** So many of them are acknowledged. Of a segment that is written to; the others are deleted then. */
  acked: number
}

const NAME = /^([0-9]{16})\.ndjson$/
const NEWLINE = 10

export function newSegment(folder: string, firstSeq: number): Segment {
  const path = join(folder, `${String(firstSeq).padStart(16, '0')}.ndjson`)
  return { path, firstSeq, lastSeq: firstSeq - 1, bytes: 0, acked: 0 }
}

/** The first number of a segment by its file's name, or null for another file. */
export function segmentNumber(name: string): number | null {
  const digits = NAME.exec(name)?.[1]
  return digits === undefined ? null : Number(digits)
}

/**
 * What a file holds: its lines up to the first that is torn, not JSON or not the next of this epoch. The rest,
 * which a kill or a power cut left half written, is cut off.
 */
export async function recoverSegment(folder: string, firstSeq: number, epoch: string): Promise<Segment> {
  const segment = newSegment(folder, firstSeq)
  const content = await readFile(segment.path)
  for (;;) {
    const newline = content.indexOf(NEWLINE, segment.bytes)
    if (newline === -1) break
    const line = content.toString('utf8', segment.bytes, newline)
    if (!isNext(line, epoch, segment.lastSeq + 1)) break
    segment.lastSeq += 1
    segment.bytes = newline + 1
  }
  if (segment.bytes < content.length) await truncate(segment.path, segment.bytes)
  return segment
}

function isNext(line: string, epoch: string, seq: number): boolean {
  try {
    const parsed = JSON.parse(line) as { epoch?: unknown; seq?: unknown } | null
    return parsed?.epoch === epoch && parsed.seq === seq
  } catch {
    return false
  }
}

/** Whole lines from `offset`, about `maxBytes` of them but at least one. Null when the file is gone. */
export async function readLines(segment: Segment, offset: number, maxBytes: number): Promise<Buffer | null> {
  const handle = await open(segment.path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (handle === null) return null
  try {
    for (let size = maxBytes; ; size *= 2) {
      const wanted = Math.min(size, segment.bytes - offset)
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(wanted), 0, wanted, offset)
      const end = buffer.lastIndexOf(NEWLINE, bytesRead - 1)
      if (bytesRead > 0 && end !== -1) return buffer.subarray(0, end + 1)
      if (wanted < size) return Buffer.alloc(0)
    }
  } finally {
    await handle.close()
  }
}
