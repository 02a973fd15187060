// ASCII text, numbers and JSON strings written as bytes, without a string in between. Each call out of JavaScript,
// as Buffer.toString, Buffer.write and the making of strings are, costs a program that was asleep more than some dozens
// of characters do here. Each function returns where what it has written ends.

/** What is written as more than a backslash and a letter. */
const OTHER = 1

/** By byte: 0 for one that stands for itself, the letter that follows a backslash, or OTHER. */
const ESCAPES = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 128) return OTHER
  const quoted = JSON.stringify(String.fromCharCode(byte))
  if (quoted.length === '"x"'.length) return 0
  return quoted.length === '"\\n"'.length ? quoted.charCodeAt(2) : OTHER
})

const [QUOTE, BACKSLASH, ZERO] = [0x22, 0x5c, 0x30]

/**
 * As JSON.stringify writes it, in at most twice its length and two. null for text that is more than ASCII with newlines,
 * tabs and quotes.
 */
export function writeQuoted(bytes: Uint8Array, start: number, text: Uint8Array): number | null {
  let end = start
  bytes[end++] = QUOTE
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0
    const letter = ESCAPES[byte] ?? OTHER
    if (letter === OTHER) return null
    if (letter !== 0) bytes[end++] = BACKSLASH
    bytes[end++] = letter === 0 ? byte : letter
  }
  bytes[end++] = QUOTE
  return end
}

/** @param text of ASCII characters */
export function writeAscii(bytes: Uint8Array, start: number, text: string): number {
  for (let at = 0; at < text.length; at++) bytes[start + at] = text.charCodeAt(at)
  return start + text.length
}

/** @param value an integer from 0 on */
export function writeNumber(bytes: Uint8Array, start: number, value: number): number {
  let end = start
  for (let rest = value; end === start || rest > 0; rest = Math.floor(rest / 10)) end++
  let rest = value
  for (let at = end - 1; at >= start; at--) {
    bytes[at] = ZERO + (rest % 10)
    rest = Math.floor(rest / 10)
  }
  return end
}
