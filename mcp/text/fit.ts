// Fits bytes of a box into an answer.

/** What the texts of an answer may take in JSON, in bytes. The rest of the 24 KiB is for its other fields. */
export const TEXT_BYTES = 20 * 1024

export type Fitted = {
  text: string
  /** How many of the bytes it contains. */
  bytes: number
}

/** The size of a text or a list in JSON, in bytes. */
export const measure = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/**
 * The start or the end of the bytes, as much as fits into `budget` bytes of JSON. A cut is at the end of a line where one is near, and
 * never inside a character.
 */
export function fit(
  bytes: Buffer,
  budget: number,
  side: 'start' | 'end',
  clean: (text: string) => string,
): Fitted {
  for (let size = bytes.length; ; ) {
    const part = side === 'start' ? takeStart(bytes, size) : takeEnd(bytes, size)
    const text = clean(part.toString())
    const measured = measure(text)
    if (measured <= budget || part.length === 0)
      return measured <= budget ? { text, bytes: part.length } : { text: '', bytes: 0 }
    // The ratio differs between parts: a little less than it needs fewer attempts.
    size = Math.floor(part.length * Math.min(0.95, (budget / measured) * 0.98))
  }
}

const NEWLINE = 0x0a
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

function takeStart(bytes: Buffer, size: number): Buffer {
  if (size >= bytes.length) return bytes
  const newline = size === 0 ? -1 : bytes.lastIndexOf(NEWLINE, size - 1)
  if (newline >= size / 2) return bytes.subarray(0, newline + 1)
  let end = size
  while (end > size - 3 && end > 0 && isContinuation(bytes[end])) end -= 1
  return bytes.subarray(0, end)
}

function takeEnd(bytes: Buffer, size: number): Buffer {
  if (size >= bytes.length) return bytes
  const from = bytes.length - size
  const newline = bytes.indexOf(NEWLINE, from)
  if (newline !== -1 && newline + 1 < bytes.length && newline - from < size / 2)
    return bytes.subarray(newline + 1)
  let start = from
  while (start < from + 3 && isContinuation(bytes[start])) start += 1
  return bytes.subarray(start)
}
