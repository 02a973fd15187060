// Finds the start of the last lines of a stream: reads backwards in blocks that grow, and holds one block in memory.
const MIN_BLOCK_BYTES = 64 * 1024
const MAX_BLOCK_BYTES = 4 * 1024 * 1024
const NEWLINE = 0x0a

/** The bytes from `offset` on. `offset` is larger than requested if the bytes before it were discarded. */
export type Block = { offset: number; bytes: Buffer }

/**
 * The offset of the first of the last `count` lines. Text after the last newline is a line.
 * @param size of the stream in bytes
 * @param readBlock reads the bytes from `from` up to, not including, `to`
 */
export async function findLastLines(
  count: number,
  size: number,
  readBlock: (from: number, to: number) => Promise<Block>,
): Promise<number> {
  if (count === 0) return size
  let remaining = count
  let blockBytes = MIN_BLOCK_BYTES
  for (let end = size; end > 0; ) {
    const from = Math.max(0, end - blockBytes)
    const { offset, bytes } = await readBlock(from, end)
    for (let index = bytes.lastIndexOf(NEWLINE); index >= 0; ) {
      // The final newline ends the last line.
      if (offset + index !== size - 1) remaining -= 1
      if (remaining === 0) return offset + index + 1
      index = index === 0 ? -1 : bytes.lastIndexOf(NEWLINE, index - 1)
    }
    if (offset > from) return offset
    end = from
    blockBytes = Math.min(blockBytes * 4, MAX_BLOCK_BYTES)
  }
  return 0
}
