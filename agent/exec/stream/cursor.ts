// A reader's place in one log, and whether there may be more behind it.
import { STREAM_CHUNK_BYTES } from '../../../shared/api/processes.ts'
import { unfinishedBytes } from '../../../shared/utf8.ts'
import type { OutputLog, StreamName } from '../detached/types.ts'
import { type Encoding, encodeOutput, type Offsets } from './event.ts'

export type Cursor = {
  readonly name: StreamName
  readonly log: OutputLog
  /** There may be bytes behind the offset. */
  dirty: boolean
}

/** What a cursor found: the bytes of the next event, and where they begin. */
type Found = { cursor: Cursor; offset: number; bytes: Buffer }

/** @param complete the process has ended: what is halved now stays so */
async function look(cursor: Cursor, from: number, encoding: Encoding, complete: boolean): Promise<Found> {
  // Before the reading: a change in the meantime makes it dirty again.
  cursor.dirty = false
  const { offset, bytes } = await cursor.log.read(from, STREAM_CHUNK_BYTES)
  // A read that came upon a head given up may stop short of the end.
  if (bytes.length === STREAM_CHUNK_BYTES || (offset !== from && bytes.length > 0)) cursor.dirty = true
  const last = bytes.length < STREAM_CHUNK_BYTES && complete
  const held = encoding === 'utf8' && !last ? unfinishedBytes(bytes) : 0
  return { cursor, offset, bytes: held === 0 ? bytes : bytes.subarray(0, bytes.length - held) }
}

/** The next event of each log that may have one; moves `offsets`. Both get the same share. */
export async function nextOutput(
  cursors: readonly Cursor[],
  offsets: Offsets,
  encoding: Encoding,
  complete: boolean,
): Promise<string> {
  const dirty = cursors.filter((cursor) => cursor.dirty)
  const found = await Promise.all(
    dirty.map((cursor) => look(cursor, offsets[cursor.name], encoding, complete)),
  )
  let events = ''
  for (const { cursor, offset, bytes } of found) {
    if (bytes.length === 0) continue
    offsets[cursor.name] = offset + bytes.length
    events += encodeOutput(cursor.name, offsets, bytes, encoding)
  }
  return events
}
