// Recognises UUIDs, such as the ids of boxes, and their prefixes. Does not import node:crypto, which would delay the start of every
// command of the CLI.

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A mistyped name should not match the id of a box by chance. */
export const MIN_ID_PREFIX_LENGTH = 8

/** The first and the last UUID that starts with the text. undefined: no UUID does, or the text is too short. */
export function findUuidRange(prefix: string): [first: string, last: string] | undefined {
  const complete = (digit: string) =>
    prefix + '########-####-####-####-############'.replaceAll('#', digit).slice(prefix.length)
  const [first, last] = [complete('0'), complete('f')]
  return prefix.length >= MIN_ID_PREFIX_LENGTH && isUuid(first) ? [first, last] : undefined
}

export const isUuid = (text: string): boolean => UUID_PATTERN.test(text)
