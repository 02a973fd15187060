// Where a page of bytes can begin and end so that no UTF-8 character is cut. Pure.
import { isContinuation, unfinishedBytes } from '../../shared/utf8.ts'

/** How many of the first bytes may be the end of a character whose beginning is not there: 0 to 3. */
export function orphanedBytes(bytes: Uint8Array): number {
  let count = 0
  while (count < 3 && isContinuation(bytes[count])) count++
  return count
}

/**
 * The length of the page: `limit` bytes, less what would be half a character; more (by 3 at most) when the first
 * character alone is longer than `limit`.
 * @param bytes from the page's beginning on, up to `limit` + 3 of them
 * @param last nothing comes after these bytes: what is unfinished then stays so
 */
export function pageLength(bytes: Uint8Array, limit: number, last: boolean): number {
  const whole = Math.min(limit, bytes.length)
  if (whole === bytes.length && last) return whole
  const cut = whole - unfinishedBytes(bytes.subarray(0, whole))
  if (cut > 0 || whole === bytes.length) return cut
  // A character longer than the limit: as much of it as is there, unless more of it is to come.
  for (let length = whole + 1; length <= bytes.length; length++) {
    // Complete with this byte, or broken off before it.
    if (unfinishedBytes(bytes.subarray(0, length)) === 0)
      return isContinuation(bytes[length - 1]) ? length : length - 1
  }
  return last ? bytes.length : 0
}
