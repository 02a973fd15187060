// Checks at the start that the database has no value whose master key is missing.
import { formatCount } from '../../../shared/format-count.ts'
import type { KeyFile } from '../../base/sealing/key-file.ts'
import type { Keyring } from '../../base/sealing/keyring.ts'
import { StartError } from '../../base/start-error.ts'
import type { Db } from '../../db/open.ts'
import type { SealedColumn } from '../../http/module.ts'
import { countRowsByKey } from './store.ts'

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

/** Throws StartError. */
export function assertKeysPresent(
  counts: ReadonlyMap<string, number>,
  { keyring, file }: { keyring: Keyring; file: KeyFile },
): void {
  const missing = [...counts].filter(([keyId]) => !keyring.has(keyId))
  if (missing.length === 0) return
  const list = missing.map(([keyId, count]) => `${keyId} (${formatCount(count, 'row')})`)
  throw new StartError(
    `Master keys are missing in ${file.path}: ${list.join(', ')}. Without them, secrets in the database cannot be decrypted. Add their lines to the file, from a backup or a copy of it.`,
  )
}
