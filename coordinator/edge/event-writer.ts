// Where a stream's events go: the body of an answer, without what Node's HTTP does to small pieces.
import type { ServerResponse } from 'node:http'

/** What is larger costs more to copy than to send in pieces. */
const SMALL_BYTES = 16 * 1024

/** As much of a Writable as events need. */
export type EventWriter = {
  readonly destroyed: boolean
  /** false: it has enough until 'drain'. */
  write(events: string | Buffer): boolean
  end(): unknown
  destroy(): unknown
  on(event: 'drain' | 'close' | 'error', listener: () => void): unknown
  once(event: 'close', listener: () => void): unknown
  off(event: 'drain' | 'close', listener: () => void): unknown
}

/**
 * For an answer whose head was sent. A small write goes to the connection at once and as one piece, where Node would
 * hold it until the end of its turn, and then send it in four. It is a chunk of the body all the same: an answer that is
 * cut off does not look complete.
 */
export function eventWriter(response: ServerResponse): EventWriter {
  const { socket } = response
  // It waits for an earlier answer on its connection, or goes to somebody who knows no chunks.
  if (socket === null || !response.chunkedEncoding) return response
  const emitterOf = (event: string) => (event === 'drain' ? socket : response)
  return {
    get destroyed() {
      return response.destroyed
    },
    write(events) {
      const bytes = typeof events === 'string' ? Buffer.from(events) : events
      const small = bytes.length > 0 && bytes.length <= SMALL_BYTES
      return small ? socket.write(chunkOf(bytes)) : response.write(bytes)
    },
    end: () => response.end(),
    destroy: () => response.destroy(),
    on: (event, listener) => emitterOf(event).on(event, listener),
    once: (event, listener) => emitterOf(event).once(event, listener),
    off: (event, listener) => emitterOf(event).off(event, listener),
  }
}

const HEX_DIGITS = Buffer.from('0123456789abcdef')
const [RETURN, NEWLINE] = [13, 10]

/**
 * One of a chunked body (RFC 9112, 7.1). An empty one would end it. Set byte by byte: each call out of JavaScript, as
 * Buffer.write is one, costs a program that was asleep as much as all of this.
 */
function chunkOf(bytes: Buffer): Buffer {
  const { length } = bytes
  let digits = 1
  while (length >> (4 * digits) > 0) digits++
  const chunk = Buffer.allocUnsafe(digits + length + 4)
  let at = 0
  for (let shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    chunk[at++] = HEX_DIGITS[(length >> shift) & 0xf] ?? 0
  chunk[at++] = RETURN
  chunk[at++] = NEWLINE
  chunk.set(bytes, at)
  chunk[at + length] = RETURN
  chunk[at + length + 1] = NEWLINE
  return chunk
}
