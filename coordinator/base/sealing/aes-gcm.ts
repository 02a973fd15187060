// AES-256-GCM, with the random IV and the tag in front of the ciphertext.
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
export const KEY_BYTES = 32

/** The bytes that encryption adds. */
export const OVERHEAD_BYTES = IV_BYTES + TAG_BYTES

export function encrypt(key: KeyObject | Buffer, plaintext: Buffer, associatedData: Buffer): Buffer {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES }).setAAD(associatedData)
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), ciphertext])
}

/** Returns null when the key, the associated data or the bytes are not those of the encryption. */
export function decrypt(key: KeyObject | Buffer, bytes: Buffer, associatedData: Buffer): Buffer | null {
  if (bytes.length < OVERHEAD_BYTES) return null
  const iv = bytes.subarray(0, IV_BYTES)
  const decipher = createDecipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES })
    .setAAD(associatedData)
    .setAuthTag(bytes.subarray(IV_BYTES, OVERHEAD_BYTES))
  // update() returns bytes that are not authentic yet: they are used only when final() has verified the tag.
  const start = decipher.update(bytes.subarray(OVERHEAD_BYTES))
  try {
    return Buffer.concat([start, decipher.final()])
  } catch {
    return null
  }
}
