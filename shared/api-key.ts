// Creates API keys.
import { randomInt } from 'node:crypto'
import { API_KEY_ALPHABET, API_KEY_RANDOM_LENGTH, computeChecksum } from './api-key-checksum.ts'

/** Creates an API key: `dcp_`, 32 random characters (190 bits) and a checksum. The database stores only its hash. */
export function newApiKey(): string {
  const random = Array.from(
    { length: API_KEY_RANDOM_LENGTH },
    () => API_KEY_ALPHABET[randomInt(API_KEY_ALPHABET.length)],
  ).join('')
  return `dcp_${random}${computeChecksum(random)}`
}
