// Delays the reset of a connection until its reader has the bytes that arrived before.
import type { Readable } from 'node:stream'

/**
 * Calls `callback` when the reader has all bytes in the buffer of the stream: destroy() would discard them. The caller makes
 * sure that none are added.
 */
export function whenRead(stream: Readable, callback: () => void): void {
  if (stream.readableLength === 0) {
    callback()
    return
  }
  const onData = () => {
    if (stream.readableLength > 0) return
    stream.off('data', onData)
    // The reader gets these bytes first.
    process.nextTick(callback)
  }
  // Unlike on(), this does not make the stream flow.
  stream.prependListener('data', onData)
}
