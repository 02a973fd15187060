// Joins the small chunks of a stream into blocks.
import type { Readable } from 'node:stream'
import { freeBuffer } from '../../shared/free-buffer.ts'

/**
 * Copies the stream into one reused block: a block is valid only until the next one is requested. Throws when the stream
 * errors. Frees each chunk after the copy, so that memory does not grow until the next garbage collection.
 */
export async function* readBlocks(
  stream: Readable,
  blockBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  const block = Buffer.allocUnsafeSlow(blockBytes)
  let filled = 0
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    for (let position = 0; position < chunk.length; ) {
      const copied = chunk.copy(block, filled, position)
      position += copied
      filled += copied
      if (filled === blockBytes) {
        yield block
        filled = 0
      }
    }
    freeBuffer(chunk)
  }
  if (filled > 0) yield block.subarray(0, filled)
}
