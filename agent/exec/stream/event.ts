// One event of the stream as text/event-stream writes it.
import { eventText, type Offsets, type StreamEvents } from '../../../shared/api/processes.ts'
import type { StreamName } from '../detached/types.ts'
import { writeAscii, writeNumber, writeQuoted } from './ascii.ts'

export type Encoding = 'utf8' | 'base64'

/** @param after the offsets once the event has been read */
export const encodeEvent = <N extends keyof StreamEvents>(
  name: N,
  after: Offsets,
  data: StreamEvents[N],
): Buffer => Buffer.from(eventText(name, after, JSON.stringify(data)))

/** `after[name]` is the offset after the last of the bytes, of which nothing is kept. */
export function encodeOutput(name: StreamName, after: Offsets, bytes: Buffer, encoding: Encoding): Buffer {
  const short = encoding === 'utf8' && bytes.length <= SHORT_BYTES ? encodeShort(name, after, bytes) : null
  if (short !== null) return short
  const text =
    encoding === 'base64' ? `"${bytes.toString('base64')}"` : JSON.stringify(bytes.toString('utf8'))
  const nextOffset = after[name]
  const offset = nextOffset - bytes.length
  return Buffer.from(eventText(name, after, `{"data":${text},"offset":${offset},"nextOffset":${nextOffset}}`))
}

/** Longer output is quoted faster by way of a string. */
const SHORT_BYTES = 1024
/** Around the output of an event. */
const MOST_ELSE = 256
const BEGINNINGS: Readonly<Record<StreamName, string>> = {
  stdout: 'event: stdout\nid: ',
  stderr: 'event: stderr\nid: ',
}
/** One event at a time is made here: nothing of it is kept. */
const draft = Buffer.allocUnsafeSlow(2 * SHORT_BYTES + MOST_ELSE)

/** The same event; null where the output has to be quoted by way of a string. */
function encodeShort(name: StreamName, after: Offsets, bytes: Buffer): Buffer | null {
  let end = writeAscii(draft, 0, BEGINNINGS[name])
  end = writeNumber(draft, end, after.stdout)
  end = writeAscii(draft, end, ':')
  end = writeNumber(draft, end, after.stderr)
  end = writeAscii(draft, end, '\ndata: {"data":')
  const quoted = writeQuoted(draft, end, bytes)
  if (quoted === null) return null
  end = writeAscii(draft, quoted, ',"offset":')
  end = writeNumber(draft, end, after[name] - bytes.length)
  end = writeAscii(draft, end, ',"nextOffset":')
  end = writeNumber(draft, end, after[name])
  end = writeAscii(draft, end, '}\n\n')
  return Buffer.from(draft.subarray(0, end))
}
