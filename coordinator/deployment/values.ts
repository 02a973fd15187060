// The values that all coordinators of the database share: created once, read by each. Secret values are encrypted.
import type { Keyring } from '../base/sealing/keyring.ts'
import type { SecretValue } from '../base/sealing/secret-value.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import { type DeploymentValueRow, findValue, insertValue, lockRow, replaceValue } from './store.ts'

export type SealedValues = { db: Db; keyring: Pick<Keyring, 'seal' | 'open'> }

/** Returns the stored value. When there is none, stores that of `create`, unless another coordinator stores one first. */
export async function ensureValue(db: Db, name: string, create: () => string): Promise<string> {
  const { value } = await ensureRow(db, name, () => ({ name, value: create(), key_id: null }))
  return value
}

/** The same for a secret value. Throws SealedValueError when the master keys do not decrypt the stored value. */
export async function ensureSealedValue(
  { db, keyring }: SealedValues,
  name: string,
  create: () => SecretValue,
): Promise<SecretValue> {
  const { value } = await ensureRow(db, name, () => seal(keyring, name, create()))
  return keyring.open(value, getContext(name))
}

/** Returns null when there is no value. Throws like ensureSealedValue(). */
export async function readSealedValue(
  { db, keyring }: SealedValues,
  name: string,
): Promise<SecretValue | null> {
  const row = await findValue(db, name)
  return row === undefined ? null : keyring.open(row.value, getContext(name))
}

/** Stores the value, also when there is another one. */
export const replaceSealedValue = (
  { db, keyring }: SealedValues,
  name: string,
  value: SecretValue,
): Promise<void> => replaceValue(db, seal(keyring, name, value))

/** Returns false when there is a value with the name, also one of a transaction that commits meanwhile. */
export const insertSealedValue = (
  trx: Trx,
  keyring: Pick<Keyring, 'seal'>,
  name: string,
  value: SecretValue,
): Promise<boolean> => insertValue(trx, seal(keyring, name, value))

/**
 * Returns the value, and locks it until the transaction ends: other coordinators of the database wait. The first transaction
 * creates an empty one. A value that is always empty is only a lock.
 */
export async function lockValue(trx: Trx, name: string): Promise<string> {
  const row = (await lockRow(trx, name)) ?? (await insertAndLock(trx, name))
  return row.value
}

/** The same without the lock. Returns '' when there is no value. */
export const readValue = async (db: Db | Trx, name: string): Promise<string> =>
  (await findValue(db, name))?.value ?? ''

/** Replaces a value that lockValue() has locked. */
export const setValue = (trx: Trx, name: string, value: string): Promise<void> =>
  replaceValue(trx, { name, value, key_id: null })

async function insertAndLock(trx: Trx, name: string): Promise<DeploymentValueRow> {
  await insertValue(trx, { name, value: '', key_id: null })
  const row = await lockRow(trx, name)
  if (row === undefined) throw new Error(`The value ${name} was deleted from the database meanwhile.`)
  return row
}

async function ensureRow(
  db: Db,
  name: string,
  create: () => DeploymentValueRow,
): Promise<DeploymentValueRow> {
  const existing = await findValue(db, name)
  if (existing !== undefined) return existing
  const created = create()
  if (await insertValue(db, created)) return created
  const other = await findValue(db, name)
  if (other === undefined) throw new Error(`The value ${name} was deleted from the database meanwhile.`)
  return other
}

function seal(keyring: Pick<Keyring, 'seal'>, name: string, value: SecretValue): DeploymentValueRow {
  const { sealed, keyId } = keyring.seal(value, getContext(name))
  return { name, value: sealed, key_id: keyId }
}

/** The values belong to no workspace (SealedColumn.isOfDeployment). */
const getContext = (name: string) => ({ workspaceId: '', rowId: name })
