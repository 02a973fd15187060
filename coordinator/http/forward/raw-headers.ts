// Headers as pairs of name and value, in the order and with the letter case in which they were received.

export type HeaderPair = readonly [name: string, value: string]

/** @param rawHeaders as in IncomingMessage: names and values alternate */
export const toPairs = (rawHeaders: readonly string[]): HeaderPair[] =>
  rawHeaders.flatMap((name, index): HeaderPair[] =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : [],
  )

export const isNamed = ([name]: HeaderPair, lowerCaseName: string): boolean =>
  name.toLowerCase() === lowerCaseName
