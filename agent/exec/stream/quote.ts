// Short plain text as a JSON string, from bytes to bytes without a string in between. Each call out of JavaScript, as
// Buffer.toString and Buffer.write are, costs a program that was asleep more than some dozens of characters do here.

/** What is written as more than a backslash and a letter. */
const OTHER = 1

/** By byte: 0 for one that stands for itself, the letter that follows a backslash, or OTHER. */
const ESCAPES = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 128) return OTHER
  const quoted = JSON.stringify(String.fromCharCode(byte))
  if (quoted.length === '"x"'.length) return 0
  return quoted.length === '"\\n"'.length ? quoted.charCodeAt(2) : OTHER
})

const [QUOTE, BACKSLASH] = [0x22, 0x5c]

/** How many bytes writeQuoted writes; null for text that is more than ASCII with newlines, tabs and quotes. */
export function quotedLength(text: Uint8Array): number | null {
  let length = text.length + 2
  for (let at = 0; at < text.length; at++) {
    const letter = ESCAPES[text[at] ?? 0]
    if (letter === OTHER) return null
    if (letter !== 0) length++
  }
  return length
}

/** As JSON.stringify would write what has a quotedLength. Returns where it ends. */
export function writeQuoted(bytes: Uint8Array, start: number, text: Uint8Array): number {
  let end = start
  bytes[end++] = QUOTE
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0
    const letter = ESCAPES[byte] ?? 0
    if (letter !== 0) bytes[end++] = BACKSLASH
    bytes[end++] = letter === 0 ? byte : letter
  }
  bytes[end++] = QUOTE
  return end
}

/** Returns where it ends. @param text of ASCII characters */
export function writeAscii(bytes: Uint8Array, start: number, text: string): number {
  for (let at = 0; at < text.length; at++) bytes[start + at] = text.charCodeAt(at)
  return start + text.length
}
