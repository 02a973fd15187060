// The interface of the master keys, which encrypt the values that the database stores.
import type { SecretValue } from './secret-value.ts'

/** Identifies the row, so that a value that was copied to another row cannot be decrypted. */
export type SealContext = { workspaceId: string; rowId: string }

export type Sealed = {
  /** `v1.<key id>.<wrapped data key>.<iv, tag and ciphertext>`, the parts in base64url. */
  sealed: string
  /** The id of the master key. */
  keyId: string
}

export interface Keyring {
  /** New values are encrypted with this master key. */
  readonly activeKeyId: string
  /** The ids of all master keys. The first one is active. */
  readonly keyIds: readonly string[]
  has(keyId: string): boolean
  seal(value: SecretValue, context: SealContext): Sealed
  /** Throws SealedValueError when the value is damaged, belongs to another row, or the master key is missing. */
  open(sealed: string, context: SealContext): SecretValue
  /** Encrypts the data key with the active master key. The value is not decrypted. Throws like open(). */
  rewrap(sealed: string, context: SealContext): Sealed
}

/** The message has no part of the value. */
export class SealedValueError extends Error {
  override name = 'SealedValueError'
}
