// Where a run of bytes can be cut so that no UTF-8 character is. Pure.

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** How many bytes a character with this first byte has; 1 for a byte that begins none. */
function lengthOf(lead: number): number {
  if (lead >= 0xf0 && lead <= 0xf4) return 4
  if (lead >= 0xe0 && lead <= 0xef) return 3
  return lead >= 0xc2 && lead <= 0xdf ? 2 : 1
}

/** Not every second byte may follow each first one, and a decoder gives up at once on one that may not. */
function mayFollow(lead: number, second: number): boolean {
  if (lead === 0xe0) return second >= 0xa0
  if (lead === 0xed) return second <= 0x9f
  if (lead === 0xf0) return second >= 0x90
  return lead === 0xf4 ? second <= 0x8f : true
}

/** How many of the last bytes, 0 to 3, begin a character that may go on behind them. */
export function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    const second = bytes[bytes.length - back + 1]
    const unfinished = lengthOf(byte) > back && (second === undefined || mayFollow(byte, second))
    return unfinished ? back : 0
  }
  return 0
}
