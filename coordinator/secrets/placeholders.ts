// Placeholders: what a box has instead of the value of a secret.
import { randomInt } from 'node:crypto'

const CHARS = 32
/** 32 characters, so that a placeholder has 160 random bits. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** @param prefix public text before the placeholder, for clients that check the shape of a key */
export function newPlaceholder(prefix = ''): string {
  const chars = Array.from({ length: CHARS }, () => ALPHABET.charAt(randomInt(ALPHABET.length)))
  return `${prefix}dcpsec_${chars.join('')}`
}
