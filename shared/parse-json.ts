// Reads JSON that may be none, such as a response of another program or a file that was cut off.

/** Returns undefined for a text that is no JSON, and for null. */
export function parseJson(text: string | null): unknown {
  if (text === null) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
