// Finds where UTF-8 bytes can be split without splitting a character.

/**
 * Returns the length of an incomplete character at the end, 0 to 3 bytes. Both sides of a split before it decode to the
 * same text as the whole, including U+FFFD for invalid bytes.
 */
export function incompleteSuffixLength(bytes: Uint8Array): number {
  const longest = Math.min(3, bytes.length)
  for (let length = 1; length <= longest; length++) {
    const lead = bytes[bytes.length - length] ?? 0
    if (isContinuationByte(lead)) continue
    const isIncomplete = length < sequenceLength(lead)
    const second = bytes[bytes.length - length + 1]
    return isIncomplete && (second === undefined || isValidSecondByte(lead, second)) ? length : 0
  }
  return 0
}

export const isContinuationByte = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80

const isBetween = (byte: number, first: number, last: number) => byte >= first && byte <= last

/** The number of bytes of a character with this first byte; 1 for an invalid first byte. */
export function sequenceLength(lead: number): number {
  if (isBetween(lead, 0xc2, 0xdf)) return 2
  if (isBetween(lead, 0xe0, 0xef)) return 3
  return isBetween(lead, 0xf0, 0xf4) ? 4 : 1
}

/** The second byte has a narrower range where it would encode an overlong form, a surrogate or more than U+10FFFF. */
function isValidSecondByte(lead: number, second: number): boolean {
  if (lead === 0xe0) return second >= 0xa0
  if (lead === 0xed) return second <= 0x9f
  if (lead === 0xf0) return second >= 0x90
  return lead !== 0xf4 || second <= 0x8f
}
