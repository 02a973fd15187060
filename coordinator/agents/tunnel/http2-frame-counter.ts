// Counts the HTTP/2 frames in a stream of bytes, before they are parsed: one message can carry thousands of tiny frames.

const HEADER_BYTES = 9

/** @returns a function that takes consecutive chunks and returns the number of frames that start in the chunk */
export function createHttp2FrameCounter(): (chunk: Buffer) => number {
  /** Bytes until the next header, and the bytes of a header that the last chunk ended in. */
  let skip = 0
  let partial: Buffer = Buffer.alloc(0)
  return (chunk) => {
    let frames = 0
    let bytes = chunk
    if (partial.length > 0) {
      bytes = Buffer.concat([partial, chunk])
      partial = Buffer.alloc(0)
    }
    let at = skip
    for (; at + HEADER_BYTES <= bytes.length; frames++) at += HEADER_BYTES + bytes.readUIntBE(at, 3)
    if (at < bytes.length) {
      // A copy: the slice would keep the whole message in memory.
      partial = Buffer.from(bytes.subarray(at))
      at = bytes.length
    }
    skip = at - bytes.length
    return frames
  }
}
