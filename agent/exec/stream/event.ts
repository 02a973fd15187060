// One event of the stream as text/event-stream writes it.
import { eventId, type Offsets, type StreamEvents } from '../../../shared/api/processes.ts'
import type { StreamName } from '../detached/types.ts'
import { quotedLength, writeAscii, writeQuoted } from './quote.ts'

export type Encoding = 'utf8' | 'base64'

/** Longer output is quoted faster by way of a string. */
const SHORT_BYTES = 1024

const head = (name: string, after: Offsets): string => `event: ${name}\nid: ${eventId(after)}\ndata: `
const END = '\n\n'

/** @param after the offsets once the event has been read */
export const encodeEvent = <N extends keyof StreamEvents>(
  name: N,
  after: Offsets,
  data: StreamEvents[N],
): Buffer => Buffer.from(head(name, after) + JSON.stringify(data) + END)

/** `after[name]` is the offset after the last of the bytes, of which nothing is kept. */
export function encodeOutput(name: StreamName, after: Offsets, bytes: Buffer, encoding: Encoding): Buffer {
  const nextOffset = after[name]
  const before = `${head(name, after)}{"data":`
  const behind = `,"offset":${nextOffset - bytes.length},"nextOffset":${nextOffset}}${END}`
  const length = encoding === 'utf8' && bytes.length <= SHORT_BYTES ? quotedLength(bytes) : null
  if (length === null) return Buffer.from(before + quote(bytes, encoding) + behind)
  const event = Buffer.allocUnsafe(before.length + length + behind.length)
  const dataAt = writeAscii(event, 0, before)
  writeAscii(event, writeQuoted(event, dataAt, bytes), behind)
  return event
}

const quote = (bytes: Buffer, encoding: Encoding): string =>
  encoding === 'base64' ? `"${bytes.toString('base64')}"` : JSON.stringify(bytes.toString('utf8'))
