// Where UTF-8 may be cut without halving a character. Pure.

/**
 * How many bytes at the end begin a character whose rest may still come: 0 to 3. What is cut there decodes to the same
 * text as the whole would, U+FFFD for invalid bytes and all.
 */
export function unfinishedBytes(bytes: Uint8Array): number {
  const longest = Math.min(3, bytes.length)
  for (let length = 1; length <= longest; length++) {
    const lead = bytes[bytes.length - length] ?? 0
    if (isContinuation(lead)) continue
    const missing = length < characterLength(lead)
    const second = bytes[bytes.length - length + 1]
    return missing && (second === undefined || mayFollow(lead, second)) ? length : 0
  }
  return 0
}

export const isContinuation = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80

const isBetween = (byte: number, first: number, last: number) => byte >= first && byte <= last

/** How many bytes a character with this first byte has; 1 for a byte that begins none. */
export function characterLength(lead: number): number {
  if (isBetween(lead, 0xc2, 0xdf)) return 2
  if (isBetween(lead, 0xe0, 0xef)) return 3
  return isBetween(lead, 0xf0, 0xf4) ? 4 : 1
}

/** After these the second byte has a narrower range: overlong forms, surrogates and what lies beyond Unicode. */
function mayFollow(lead: number, second: number): boolean {
  if (lead === 0xe0) return second >= 0xa0
  if (lead === 0xed) return second <= 0x9f
  if (lead === 0xf0) return second >= 0x90
  return lead !== 0xf4 || second <= 0x8f
}
