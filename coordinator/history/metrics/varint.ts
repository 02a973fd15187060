// Variable-length integers: seven bits per byte, the lowest first (LEB128). Values are at most 2^53 - 1.

export type VarintWriter = {
  write(value: number): void
  writeBytes(bytes: Uint8Array): void
  /** A view that the next write may invalidate. */
  finish(): Uint8Array
}

/** The largest integer has eight bytes. */
const MAX_VARINT_BYTES = 8

export function createVarintWriter(initialBytes = 16 * 1024): VarintWriter {
  let bytes = new Uint8Array(initialBytes)
  let length = 0

  function reserve(count: number): void {
    if (length + count <= bytes.length) return
    const larger = new Uint8Array(Math.max(2 * bytes.length, length + count))
    larger.set(bytes)
    bytes = larger
  }

  return {
    write(value) {
      reserve(MAX_VARINT_BYTES)
      let rest = value
      // The operators on 32 bits are faster, but truncate larger numbers.
      for (; rest > 0x7fff_ffff; rest = Math.floor(rest / 128)) bytes[length++] = (rest % 128) | 128
      for (; rest > 127; rest >>>= 7) bytes[length++] = (rest & 127) | 128
      bytes[length++] = rest
    },
    writeBytes(added) {
      reserve(added.length)
      bytes.set(added, length)
      length += added.length
    },
    finish: () => bytes.subarray(0, length),
  }
}

/** Every function throws RangeError when the bytes end early. */
export type VarintReader = { read(): number; readBytes(count: number): Uint8Array }

export function createVarintReader(bytes: Uint8Array): VarintReader {
  let offset = 0
  return {
    read() {
      let value = 0
      for (let factor = 1; factor <= 2 ** 49; factor *= 128) {
        if (offset >= bytes.length) throw new RangeError('the data is truncated')
        const byte = bytes[offset++] ?? 0
        value += (byte & 127) * factor
        if (byte < 128) return value
      }
      throw new RangeError('an integer is too long')
    },
    readBytes(count) {
      if (count > bytes.length - offset) throw new RangeError('the data is truncated')
      offset += count
      return bytes.subarray(offset - count, offset)
    },
  }
}
