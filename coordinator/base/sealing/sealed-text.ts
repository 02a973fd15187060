// The text form of a sealed value: `v1.<key id>.<wrapped data key>.<iv, tag and ciphertext>`.
import { KEY_BYTES, OVERHEAD_BYTES } from './aes-gcm.ts'
import { KEY_ID } from './master-key.ts'

export const SEALED_VERSION = 'v1'

export type SealedParts = {
  /** The id of the master key. */
  keyId: string
  /** The data key, encrypted with the master key. */
  wrappedKey: Buffer
  /** The value, encrypted with the data key. */
  payload: Buffer
}

export const formatSealed = ({ keyId, wrappedKey, payload }: SealedParts): string =>
  [SEALED_VERSION, keyId, wrappedKey.toString('base64url'), payload.toString('base64url')].join('.')

/** Identifies the sealed value, without its length: each has a random data key, encrypted with a random IV. */
export const getSealedVersion = (text: string): string => text.slice(0, text.lastIndexOf('.'))

/** Accepts exactly what formatSealed() returns, so that a value has one text form only. null: damaged. */
export function parseSealed(text: string): SealedParts | null {
  const [version, keyId = '', wrapped = '', value = '', ...rest] = text.split('.')
  if (version !== SEALED_VERSION || !KEY_ID.test(keyId) || rest.length > 0) return null
  const parts = {
    keyId,
    wrappedKey: Buffer.from(wrapped, 'base64url'),
    payload: Buffer.from(value, 'base64url'),
  }
  if (parts.wrappedKey.length !== KEY_BYTES + OVERHEAD_BYTES || parts.payload.length < OVERHEAD_BYTES)
    return null
  // Buffer.from() ignores characters that are not base64url, and the unused bits of the last one.
  return formatSealed(parts) === text ? parts : null
}
