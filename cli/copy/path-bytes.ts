// Paths as strings that keep names that are not UTF-8: each byte that is not part of a character is a lone surrogate, from U+DC80 to
// U+DCFF, as in Python (PEP 383).

const ESCAPE_BASE = 0xdc00
const MAX_CHARACTER_BYTES = 4

/** Decodes a path of the file system. */
export function decodePath(bytes: Buffer): string {
  const text = bytes.toString()
  if (!text.includes('\uFFFD')) return text
  const characters: string[] = []
  for (let offset = 0; offset < bytes.length; ) {
    const length = measureCharacter(bytes, offset)
    characters.push(
      length === 0
        ? String.fromCharCode(ESCAPE_BASE + (bytes[offset] ?? 0))
        : bytes.toString('utf8', offset, offset + length),
    )
    offset += Math.max(1, length)
  }
  return characters.join('')
}

/** The length of the character in bytes; 0 if it is not valid UTF-8. */
function measureCharacter(bytes: Buffer, offset: number): number {
  for (let length = 1; length <= MAX_CHARACTER_BYTES; length++) {
    const slice = bytes.subarray(offset, offset + length)
    if (Buffer.from(slice.toString()).equals(slice)) return length
  }
  return 0
}

/** The path for calls of the file system: a string if possible, because bytes are slower. */
export const toFsPath = (path: string): string | Buffer =>
  path.isWellFormed() ? path : Buffer.concat([...path].map(encodeCharacter))

export const toPathBytes = (path: string): Buffer => Buffer.from(toFsPath(path))

function encodeCharacter(character: string): Buffer {
  const byte = character.charCodeAt(0) - ESCAPE_BASE
  return character.length === 1 && byte >= 0x80 && byte <= 0xff ? Buffer.of(byte) : Buffer.from(character)
}
