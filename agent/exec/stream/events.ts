// The events of a process's stream as text (spec §4.14). Pure.

import type { StreamEvents } from '../../../shared/api/processes.ts'
import { unfinishedBytes } from '../../../shared/utf8.ts'

/** Where a reader stands, in bytes of each stream. */
export type Offsets = { stdout: number; stderr: number }

export type Encoding = 'utf8' | 'base64'

/** The most bytes of output in one event: as JSON they are six times as many at worst. */
export const EVENT_BYTES = 32 * 1024

/** One event. Its fields stand in this order, and its data on one line: whoever passes it on relies on that. */
export function encodeEvent<Name extends keyof StreamEvents>(
  name: Name,
  after: Offsets,
  data: StreamEvents[Name],
): string {
  return `event: ${name}\nid: ${after.stdout}:${after.stderr}\ndata: ${JSON.stringify(data)}\n\n`
}

/**
 * The bytes that were read at `offset` as events, and where the reader stands after them. Under utf8 the beginning of a
 * character whose rest is not there yet is left for the next time, unless `last` says that nothing follows.
 */
export function encodeOutput(
  name: keyof Offsets,
  { offset, bytes }: { offset: number; bytes: Buffer },
  before: Offsets,
  { encoding, last }: { encoding: Encoding; last: boolean },
): { text: string; after: Offsets } {
  let text = ''
  let after = before
  for (let from = 0; from < bytes.length; ) {
    const piece = bytes.subarray(from, from + EVENT_BYTES)
    const atEnd = from + piece.length === bytes.length
    const left = encoding === 'utf8' && !(atEnd && last) ? unfinishedBytes(piece) : 0
    const taken = piece.subarray(0, piece.length - left)
    if (taken.length === 0) break
    const nextOffset = offset + from + taken.length
    after = { ...after, [name]: nextOffset }
    text += encodeEvent(name, after, { data: taken.toString(encoding), offset: offset + from, nextOffset })
    from += taken.length
  }
  return { text, after }
}
