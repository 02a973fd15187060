// Reads the names of a directory in parts: between two parts the event loop continues, and the memory is bounded.
import { opendir } from 'node:fs/promises'
import { ApiError } from '../../shared/errors.ts'

const PART_ENTRIES = 1024

/** Names are bytes: decoding a name that is not UTF-8 would change it. Rejects with system errors. */
export async function* readNames(path: Buffer): AsyncGenerator<Buffer, void, undefined> {
  // The types of opendir do not have this encoding.
  const encoding = 'buffer' as BufferEncoding
  for await (const { name } of await opendir(path, { encoding, bufferSize: PART_ENTRIES }))
    yield name as unknown as Buffer
}

/** The client has disconnected, or the time limit of the request has passed: the response is not sent. */
export function assertNotCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw new ApiError('invalid_request', 'The request was cancelled.')
}
