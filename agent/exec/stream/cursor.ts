// A reader's place in one log, and whether there may be more behind it.
import { type Offsets, STREAM_CHUNK_BYTES } from '../../../shared/api/processes.ts'
import { unfinishedBytes } from '../../../shared/utf8.ts'
import type { LogBytes, OutputLog, StreamName } from '../detached/types.ts'
import { type Encoding, encodeOutput } from './event.ts'

export type Cursor = {
  readonly name: StreamName
  readonly log: OutputLog
  /** There may be bytes behind the offset. */
  dirty: boolean
}

const NOTHING: Buffer = Buffer.alloc(0)
const join = (first: Buffer, second: Buffer): Buffer =>
  first.length === 0 ? second : second.length === 0 ? first : Buffer.concat([first, second])

/** What a stream's events are made of. `offsets` move with what is told. */
export type Reading = { cursors: readonly Cursor[]; offsets: Offsets; encoding: Encoding }

/**
 * The next event of each log that may have one, without waiting; null where the disk may have to be asked. Of a process
 * that runs: what is halved may be completed later.
 */
export function outputNow({ cursors, offsets, encoding }: Reading): Buffer | null {
  let events = NOTHING
  for (const cursor of cursors) {
    if (!cursor.dirty) continue
    const read = cursor.log.readNow(offsets[cursor.name], STREAM_CHUNK_BYTES)
    // What was made before it is told first.
    if (read === null) return events.length === 0 ? null : events
    events = join(events, tell(cursor, offsets, read, encoding, false))
  }
  return events
}

/** The same, however long it takes. Both logs get the same share. @param complete the process has ended */
export async function nextOutput(reading: Reading, complete: boolean): Promise<Buffer> {
  const { cursors, offsets, encoding } = reading
  const dirty = cursors.filter((cursor) => cursor.dirty)
  const found = await Promise.all(
    dirty.map((cursor) => {
      // Before the reading: a change in the meantime makes it dirty again.
      cursor.dirty = false
      return cursor.log.read(offsets[cursor.name], STREAM_CHUNK_BYTES)
    }),
  )
  let events = NOTHING
  for (const [index, cursor] of dirty.entries()) {
    const read = found[index]
    if (read === undefined) continue
    const changed = cursor.dirty
    events = join(events, tell(cursor, offsets, read, encoding, complete))
    cursor.dirty ||= changed
  }
  return events
}

/** The event of what was read, if any. Leaves the cursor dirty when more is there for sure. */
function tell(
  cursor: Cursor,
  offsets: Offsets,
  { offset, bytes }: LogBytes,
  encoding: Encoding,
  complete: boolean,
): Buffer {
  const { name } = cursor
  // A read that came upon a head given up may stop short of the end.
  const mayGoOn = bytes.length === STREAM_CHUNK_BYTES || (offset !== offsets[name] && bytes.length > 0)
  cursor.dirty = mayGoOn
  const held = encoding === 'utf8' && (mayGoOn || !complete) ? unfinishedBytes(bytes) : 0
  const told = held === 0 ? bytes : bytes.subarray(0, bytes.length - held)
  // Also where nothing is told: what was given up is behind it, and the next read goes on from the head.
  offsets[name] = offset + told.length
  if (told.length === 0) return NOTHING
  return encodeOutput(name, offsets, told, encoding)
}
