// Page boundaries in UTF-8 bytes that do not split a character. Pure.
import { incompleteSuffixLength, isContinuationByte } from '../../../shared/utf8.ts'

/** The number of continuation bytes at the start, 0 to 3: they may belong to a character that starts before. */
export function leadingContinuationBytes(bytes: Uint8Array): number {
  let count = 0
  while (count < 3 && isContinuationByte(bytes[count])) count++
  return count
}

/**
 * The length of a page: `limit` bytes, less an incomplete character at its end; up to 3 bytes more when the first
 * character alone is longer than `limit`.
 * @param bytes from the start of the page, up to `limit` + 3 of them
 * @param isLast no bytes follow: an incomplete character then stays in the page
 */
export function utf8PageLength(bytes: Uint8Array, limit: number, isLast: boolean): number {
  const available = Math.min(limit, bytes.length)
  if (available === bytes.length && isLast) return available
  const length = available - incompleteSuffixLength(bytes.subarray(0, available))
  if (length > 0 || available === bytes.length) return length
  // The first character is longer than the limit: extend the page to its end, or wait for more bytes.
  for (let length = available + 1; length <= bytes.length; length++) {
    // The byte either completes the character or starts the next one.
    if (incompleteSuffixLength(bytes.subarray(0, length)) === 0)
      return isContinuationByte(bytes[length - 1]) ? length : length - 1
  }
  return isLast ? bytes.length : 0
}
