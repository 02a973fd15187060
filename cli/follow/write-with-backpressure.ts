// Writes to stdout or stderr at the speed of the reader.
import { once } from 'node:events'
import type { Writable } from 'node:stream'

/** Resolves when the stream can take more; throws the signal's reason if that is aborted first. */
export async function writeWithBackpressure(
  stream: Writable,
  bytes: Uint8Array | string,
  signal: AbortSignal,
): Promise<void> {
  if (stream.write(bytes)) return
  await once(stream, 'drain', { signal }).catch((error) => {
    throw signal.aborted ? signal.reason : error
  })
}
