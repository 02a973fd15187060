// Recognises API keys, and mistyped ones, by their form and checksum. Does not load node:crypto, which would delay the
// start of every command of the CLI.
import { crc32 } from 'node:zlib'

/** The digits of base 62, of which API keys consist. */
export const API_KEY_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
export const API_KEY_RANDOM_LENGTH = 32
const CHECKSUM_LENGTH = 6

const KEY = new RegExp(`^dcp_([0-9A-Za-z]{${API_KEY_RANDOM_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)
/** Keys of earlier versions have no checksum. */
const EARLIER_KEY = /^dcp_[0-9a-f]{48}$/

/** CRC-32 of the random characters, in base 62: secret scanners can verify it without a request. */
export function computeChecksum(random: string): string {
  let value = crc32(random)
  let digits = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    digits = `${API_KEY_ALPHABET[value % API_KEY_ALPHABET.length]}${digits}`
    value = Math.floor(value / API_KEY_ALPHABET.length)
  }
  return digits
}

/** null: the text does not have the form of a key with a checksum. */
function checkChecksum(text: string): boolean | null {
  const [, random, checksum] = KEY.exec(text) ?? []
  return random === undefined ? null : computeChecksum(random) === checksum
}

/** Whether the text has the form of an API key, with a correct checksum. */
export const isApiKey = (text: string): boolean => checkChecksum(text) ?? EARLIER_KEY.test(text)

/** Whether the text has the form of an API key, with a wrong checksum. */
export const isMistypedApiKey = (text: string): boolean => checkChecksum(text) === false
