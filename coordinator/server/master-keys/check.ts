// Checks at the start that the master keys are those of the database.
import { formatCount } from '../../../shared/format-count.ts'
import { SealedValueError } from '../../base/sealing/keyring.ts'
import { SecretValue } from '../../base/sealing/secret-value.ts'
import { StartError } from '../../base/start-error.ts'
import type { Db } from '../../db/open.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { insertSealedValue, readSealedValue } from '../../deployment/values.ts'
import type { SealedColumn } from '../../http/module.ts'
import type { MasterKeys } from './open-master-keys.ts'
import { countRowsByKey } from './store.ts'

/** A value that each coordinator decrypts at its start. */
const TEST_NAME = 'master_key_test'
const TEST_VALUE = new SecretValue('boxwood')

/** Returns the number of values by the id of their master key, of all columns. */
export async function countSealedValues(
  db: Db,
  columns: readonly SealedColumn[],
): Promise<Map<string, number>> {
  const total = new Map<string, number>()
  for (const column of columns)
    for (const [keyId, count] of await countRowsByKey(db, column))
      total.set(keyId, (total.get(keyId) ?? 0) + count)
  return total
}

/**
 * Stores the test value and the file of a new master key when the database has no encrypted value.
 * Throws StartError when a master key of the database is missing, or is another one than the key with its id.
 */
export async function checkMasterKeys({
  db,
  columns,
  masterKeys,
}: {
  db: Db
  columns: readonly SealedColumn[]
  masterKeys: MasterKeys
}): Promise<void> {
  const { keyring } = masterKeys
  const counts = await countSealedValues(db, columns)
  const missing = [...counts].filter(([keyId]) => !keyring.has(keyId))
  if (missing.length > 0)
    throw createKeysError(
      masterKeys,
      `Master keys are missing in ${masterKeys.file.path}: ${missing.map(([keyId, count]) => `${keyId} (${formatCount(count, 'row')})`).join(', ')}.`,
    )
  await transaction(db, async (trx) => {
    // The key is on disk before the commit. Another coordinator may have created a key at the same time: then this one is not stored.
    if (await insertSealedValue(trx, keyring, TEST_NAME, TEST_VALUE)) await masterKeys.store()
    else await openTestValue(trx, masterKeys)
  })
}

async function openTestValue(trx: Trx, masterKeys: MasterKeys): Promise<void> {
  try {
    await readSealedValue({ db: trx, keyring: masterKeys.keyring }, TEST_NAME)
  } catch (error) {
    if (!(error instanceof SealedValueError)) throw error
    throw createKeysError(
      masterKeys,
      `The master keys in ${masterKeys.file.path} are not those of the database: ${error.message}.`,
      error,
    )
  }
}

const createKeysError = ({ file }: MasterKeys, problem: string, cause?: Error): StartError =>
  new StartError(
    `${problem} Without them, secrets in the database cannot be decrypted. ${
      file.isMounted
        ? 'Add their lines to this file, which BOXWOOD_MASTER_KEYS names, from a backup or a copy of it.'
        : 'Add their lines to the file, from a backup or a copy of it, or set BOXWOOD_MASTER_KEYS to a file that has them.'
    } All coordinators of a database need the same master keys.`,
    { cause },
  )
