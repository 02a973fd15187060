// The codes that people type: 8 consonants, so that no code is a word (RFC 8628, section 6.1).
import { hashSecret } from '../../http/hash-secret.ts'

const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8

/**
 * Creates a code of 34.6 random bits, such as BCDF-GHJK.
 * @param randomInt returns an integer of 0 up to, and without, its parameter
 */
export function newCode(randomInt: (max: number) => number): string {
  const letters = Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
  return `${letters.slice(0, LENGTH / 2)}-${letters.slice(LENGTH / 2)}`
}

/** SHA-256 (hex) of a code as a person has typed it. The id makes equal codes have different hashes. */
export const hashCode = (id: string, typed: string): string =>
  hashSecret(`${id}:${typed.toUpperCase().replace(/[\s\p{Pd}]/gu, '')}`)
