// Short ASCII text as bytes.

/**
 * Sets the characters one by one, from `at` on, and returns where they end. Each call out of JavaScript, as
 * Buffer.write is one, costs a program that was asleep more than some dozens of characters.
 */
export function writeAscii(bytes: Uint8Array, at: number, text: string): number {
  for (let index = 0; index < text.length; index++) bytes[at + index] = text.charCodeAt(index)
  return at + text.length
}
