// Parses JSON of an untrusted peer. JSON.parse and schemas take time and memory per token, a multiple of that per byte of
// a string: the number of tokens is checked first.

export class BoundedJsonError extends Error {
  override name = 'BoundedJsonError'
}

/**
 * Counts the commas, colons and opening brackets outside strings, which is never less than the number of values and keys
 * minus one. Stops counting above `max`.
 */
export function countJsonTokens(text: string, max: number): number {
  let count = 0
  let isString = false
  for (let i = 0; i < text.length && count <= max; i++) {
    const char = text.charCodeAt(i)
    if (isString) {
      if (char === BACKSLASH) i++
      else if (char === QUOTE) isString = false
    } else if (char === QUOTE) isString = true
    else if (char === COMMA || char === COLON || char === BRACKET || char === BRACE) count++
  }
  return count
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BRACKET = 0x5b
const BACKSLASH = 0x5c
const BRACE = 0x7b

/** @throws BoundedJsonError whose message completes "The response …" */
export function parseBoundedJson(text: string, maxTokens: number): unknown {
  if (countJsonTokens(text, maxTokens) > maxTokens)
    throw new BoundedJsonError(`has more than ${maxTokens} JSON tokens`)
  try {
    return JSON.parse(text)
  } catch {
    throw new BoundedJsonError('is not JSON')
  }
}
