// Envelope encryption: each value has a random data key, which is encrypted with a master key. The associated data of both is the
// version and the row, so that neither part of a value can be used in another row.
import { randomBytes } from 'node:crypto'
import { decrypt, encrypt, KEY_BYTES } from './aes-gcm.ts'
import { type Keyring, type SealContext, type Sealed, SealedValueError } from './keyring.ts'
import type { MasterKeys } from './master-key.ts'
import { formatSealed, parseSealed, SEALED_VERSION, type SealedParts } from './sealed-text.ts'
import { SecretValue } from './secret-value.ts'

export function createKeyring(keys: MasterKeys): Keyring {
  const [active] = keys
  const keysById = new Map(keys.map(({ id, key }) => [id, key]))

  function sealWith(dataKey: Buffer, payload: Buffer, associatedData: Buffer): Sealed {
    const wrappedKey = encrypt(active.key, dataKey, associatedData)
    return { sealed: formatSealed({ keyId: active.id, wrappedKey, payload }), keyId: active.id }
  }

  /** Calls the function with the data key, which is overwritten afterwards. */
  function withDataKey<T>(
    sealed: string,
    context: SealContext,
    use: (dataKey: Buffer, parts: SealedParts) => T,
  ): T {
    const parts = parseSealed(sealed)
    if (parts === null) throw new SealedValueError(`the sealed value of ${context.rowId} is damaged`)
    const key = keysById.get(parts.keyId)
    if (key === undefined)
      throw new SealedValueError(
        `the master key ${parts.keyId}, which has encrypted the value of ${context.rowId}, is missing`,
      )
    const dataKey = decrypt(key, parts.wrappedKey, encodeContext(context))
    if (dataKey === null) throw notAuthentic(context)
    try {
      return use(dataKey, parts)
    } finally {
      dataKey.fill(0)
    }
  }

  return {
    activeKeyId: active.id,
    keyIds: keys.map(({ id }) => id),
    has: (keyId) => keysById.has(keyId),
    seal(value, context) {
      const associatedData = encodeContext(context)
      const dataKey = randomBytes(KEY_BYTES)
      try {
        const payload = encrypt(dataKey, Buffer.from(value.reveal()), associatedData)
        return sealWith(dataKey, payload, associatedData)
      } finally {
        dataKey.fill(0)
      }
    },
    open: (sealed, context) =>
      withDataKey(sealed, context, (dataKey, { payload }) => {
        const bytes = decrypt(dataKey, payload, encodeContext(context))
        if (bytes === null) throw notAuthentic(context)
        const value = new SecretValue(bytes.toString())
        bytes.fill(0)
        return value
      }),
    rewrap: (sealed, context) =>
      withDataKey(sealed, context, (dataKey, { payload }) =>
        sealWith(dataKey, payload, encodeContext(context)),
      ),
  }
}

/** JSON, because no two contexts have the same text. */
const encodeContext = ({ workspaceId, rowId }: SealContext): Buffer =>
  Buffer.from(JSON.stringify([SEALED_VERSION, workspaceId, rowId]))

const notAuthentic = ({ rowId }: SealContext): SealedValueError =>
  new SealedValueError(
    `the sealed value of ${rowId} cannot be decrypted: it was changed, belongs to another row, or the master key of its id is another one`,
  )
