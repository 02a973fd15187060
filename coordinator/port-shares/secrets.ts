// Creates the host names and secrets of links.
import { randomBytes, randomInt } from 'node:crypto'

/** Without characters that look like others. */
const ALPHABET = '23456789abcdefghjkmnpqrstvwxyz'
const RANDOM_CHARS = 10

/** Returns a label of a host name, such as `fig-3000-x7k2m9q4tb`: at most 49 characters. */
export function newSlug(boxName: string, port: number): string {
  const random = Array.from({ length: RANDOM_CHARS }, () => ALPHABET[randomInt(ALPHABET.length)])
  return `${boxName}-${port}-${random.join('')}`
}

/** Returns 192 random bits in characters that a URL contains unchanged. */
export const newLinkSecret = (): string => randomBytes(24).toString('base64url')
