// Small pieces put together into blocks.
import type { Readable } from 'node:stream'

/**
 * One block of memory serves for the whole stream: a piece is out of use once the next one is asked for. Throws when the
 * stream errors. Chunks that were kept until they are written would outlive the young generation, and their memory would
 * come back only when 64 MiB of them have piled up.
 */
export async function* inBlocks(
  stream: Readable,
  blockBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  const block = Buffer.allocUnsafeSlow(blockBytes)
  let filled = 0
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    for (let taken = 0; taken < chunk.length; ) {
      const copied = chunk.copy(block, filled, taken)
      taken += copied
      filled += copied
      if (filled === blockBytes) {
        yield block
        filled = 0
      }
    }
  }
  if (filled > 0) yield block.subarray(0, filled)
}
