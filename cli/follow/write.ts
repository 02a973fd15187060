// Bytes to stdout or stderr, as fast as they are read there and no faster.
import { once } from 'node:events'
import type { Writable } from 'node:stream'

/** Settles once there is room for more; throws the signal's reason when that is raised before. */
export async function write(to: Writable, bytes: Buffer | string, signal: AbortSignal): Promise<void> {
  if (to.write(bytes)) return
  await once(to, 'drain', { signal }).catch((error) => {
    throw signal.aborted ? signal.reason : error
  })
}
