// Splits a stream into chunks at positions that depend on the content, so that a change moves only the chunks around it.
// The rolling hash is the gear hash of FastCDC (Xia et al., USENIX ATC 2016).
import { createHash } from 'node:crypto'

/** Sizes in bytes. `averageBits`: the average size is about `minBytes` + 2 ^ averageBits. */
export type ChunkSizes = { minBytes: number; averageBits: number; maxBytes: number }

/**
 * About 100 KiB on average: a changed file of a few kilobytes adds about one chunk to the store, and a gigabyte has about
 * 10,000 chunks. With other sizes, later archives would share nothing with the stored ones.
 */
export const CHUNK_SIZES: ChunkSizes = { minBytes: 32 * 1024, averageBits: 16, maxBytes: 512 * 1024 }

/** The hash depends on the last 32 bytes: each older byte has been shifted out. */
const WINDOW_BYTES = 32
/** Random numbers, the same in each version. */
const GEAR = Int32Array.from({ length: 256 }, (_, byte) =>
  createHash('sha256').update(`boxwood gear ${byte}`).digest().readInt32LE(),
)

export type Chunker = {
  /** The chunk passed to `onChunk` is valid only during the call. */
  push(data: Buffer): void
  /** Emits the rest as the last chunk. */
  flush(): void
}

export function createChunker(
  onChunk: (chunk: Buffer) => void,
  { minBytes, averageBits, maxBytes }: ChunkSizes = CHUNK_SIZES,
): Chunker {
  const buffer = Buffer.allocUnsafeSlow(maxBytes)
  const mask = -1 << (32 - averageBits)
  let length = 0
  /** The bytes before this position are hashed. */
  let position = minBytes - WINDOW_BYTES
  let hash = 0

  /** Returns the end of the chunk at the start of the buffer; 0 when the buffer does not contain a complete chunk. */
  function findEnd(): number {
    let current = hash
    let i = position
    for (; i < length; i++) {
      current = ((current << 1) + (GEAR[buffer[i] as number] as number)) | 0
      if ((current & mask) === 0 && i >= minBytes) return i
    }
    hash = current
    position = Math.max(position, i)
    return length === maxBytes ? maxBytes : 0
  }

  function emit(end: number): void {
    onChunk(buffer.subarray(0, end))
    buffer.copyWithin(0, end, length)
    length -= end
    position = minBytes - WINDOW_BYTES
    hash = 0
  }

  return {
    push(data) {
      for (let offset = 0; offset < data.length; ) {
        const count = data.copy(buffer, length, offset)
        offset += count
        length += count
        for (let end = findEnd(); end > 0; end = findEnd()) emit(end)
      }
    },
    flush() {
      if (length > 0) emit(length)
    },
  }
}
