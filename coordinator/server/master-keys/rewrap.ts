// Encrypts the data keys of stored values with the active master key, after a rotation.
import type { Logger } from 'pino'
import type { Keyring } from '../../base/sealing/keyring.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import type { SealedColumn } from '../../http/module.ts'
import { countSealedValues } from './check.ts'
import { listRowsOfKey, replaceSealed, type SealedRow } from './store.ts'

/** SQLite has one connection: a batch takes a few milliseconds. */
const BATCH_SIZE = 100

export type RewrapOptions = {
  db: Db
  keyring: Keyring
  columns: readonly SealedColumn[]
  log: Pick<Logger, 'info' | 'error'>
  /** Aborts between two batches. */
  signal: AbortSignal
}

/** Logs which old keys no value uses any more. */
export async function rewrapOldValues({ db, keyring, columns, log, signal }: RewrapOptions): Promise<void> {
  const oldKeyIds = keyring.keyIds.filter((keyId) => keyId !== keyring.activeKeyId)
  if (oldKeyIds.length === 0) return
  for (const column of columns) for (const keyId of oldKeyIds) await rewrapColumn(column, keyId)
  if (signal.aborted) return
  const remaining = await countSealedValues(db, columns)
  for (const keyId of oldKeyIds) {
    const values = remaining.get(keyId) ?? 0
    if (values === 0)
      log.info({ keyId }, 'no value uses this old master key any more: its line can be removed from the file')
    else log.error({ keyId, values }, 'values still use this old master key; do not remove it')
  }

  async function rewrapColumn(column: SealedColumn, keyId: string): Promise<void> {
    let after = ''
    while (!signal.aborted) {
      const rows = await listRowsOfKey(db, column, { keyId, after, limit: BATCH_SIZE })
      if (rows.length === 0) return
      await transaction(db, async (trx) => {
        for (const row of rows) {
          const rewrapped = rewrap(column, row)
          if (rewrapped !== null) await replaceSealed(trx, column, row, rewrapped)
        }
      })
      after = rows.at(-1)?.id ?? ''
    }
  }

  /** null: the value is damaged. */
  function rewrap({ table }: SealedColumn, { id, workspaceId, sealed }: SealedRow) {
    try {
      return keyring.rewrap(sealed, { workspaceId, rowId: id })
    } catch (err) {
      log.error({ err, table, id }, 'a value cannot be encrypted with the active master key')
      return null
    }
  }
}
