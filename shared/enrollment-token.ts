// Creates and recognises tokens for enrolling a machine.
import { randomInt } from 'node:crypto'
import { API_KEY_ALPHABET, API_KEY_RANDOM_LENGTH, computeChecksum } from './api-key-checksum.ts'

const TOKEN = /^bxe_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/

/** `bxe_`, 32 random characters (190 bits) and a checksum, as in API keys. The database stores only its hash. */
export function newEnrollmentToken(): string {
  const random = Array.from(
    { length: API_KEY_RANDOM_LENGTH },
    () => API_KEY_ALPHABET[randomInt(API_KEY_ALPHABET.length)],
  ).join('')
  return `bxe_${random}${computeChecksum(random)}`
}

/** Whether the text has the form of a token, with a correct checksum: a token that was copied in part has not. */
export function isEnrollmentToken(text: string): boolean {
  const [, random, checksum] = TOKEN.exec(text) ?? []
  return random !== undefined && computeChecksum(random) === checksum
}
