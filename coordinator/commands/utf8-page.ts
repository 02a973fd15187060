// Where a page of bytes can begin and end so that no UTF-8 character is cut. Pure.

/** How many bytes a character with this first byte has; 1 for a byte that begins none. */
function lengthOf(lead: number): number {
  if (lead >= 0xf0 && lead <= 0xf4) return 4
  if (lead >= 0xe0 && lead <= 0xef) return 3
  return lead >= 0xc2 && lead <= 0xdf ? 2 : 1
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Whether the second byte may follow the first: not all may, and a decoder gives up at once on one that may not. */
function mayFollow(lead: number, second: number | undefined): boolean {
  if (second === undefined) return true
  if (lead === 0xe0) return second >= 0xa0 && second <= 0xbf
  if (lead === 0xed) return second >= 0x80 && second <= 0x9f
  if (lead === 0xf0) return second >= 0x90 && second <= 0xbf
  if (lead === 0xf4) return second >= 0x80 && second <= 0x8f
  return isContinuation(second)
}

/** How many of the last bytes are the beginning of a character that goes on behind them: 0 to 3. */
export function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    const second = back === 1 ? undefined : bytes[bytes.length - back + 1]
    return lengthOf(byte) > back && mayFollow(byte, second) ? back : 0
  }
  return 0
}

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
