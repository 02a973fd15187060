// Records the last use of API keys in memory, and writes it once a minute: a request writes nothing.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { createPeriodicWriter, type PeriodicWriter } from '../../base/periodic-writer.ts'
import type { Db } from '../../db/open.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { type KeyUse, lockFreeKeys, updateKeyUses } from '../store/keys.ts'

export type KeyUses = PeriodicWriter & {
  /** Records that the key with this hash was used now. */
  record(key: { id: string; hash: string }): void
}

export type KeyUsesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Interval between writes. Default: 60 s. */
  flushMs?: number
}

/** Three parameters per row, far below the parameter limit of either database. */
const ROWS_PER_TRANSACTION = 500

/** A write of the last uses also moves the expiry of machine keys. */
export function createKeyUses({ db, clock, log, flushMs = 60_000 }: KeyUsesOptions): KeyUses {
  /** Maps the id of a key to its last use. Only keys in the database are recorded, so their number is bounded. */
  const unwritten = new Map<string, KeyUse>()

  async function writeUnwritten(): Promise<void> {
    const uses = [...unwritten.values()]
    for (let offset = 0; offset < uses.length; offset += ROWS_PER_TRANSACTION) {
      const batch = uses.slice(offset, offset + ROWS_PER_TRANSACTION)
      await transaction(db, (trx) => writeUses(trx, batch))
      for (const use of batch) if (unwritten.get(use.id) === use) unwritten.delete(use.id)
    }
  }

  return {
    record: ({ id, hash }) => void unwritten.set(id, { id, hash, at: clock.now() }),
    ...createPeriodicWriter({
      intervalMs: flushMs,
      write: writeUnwritten,
      log,
      subject: 'the last use of API keys',
    }),
  }
}

/**
 * Omits keys that another transaction is changing. Waiting for them, in any order, could become a deadlock with a request
 * that changes several keys.
 */
async function writeUses(trx: Trx, uses: readonly KeyUse[]): Promise<void> {
  const ids = await lockFreeKeys(
    trx,
    uses.map(({ id }) => id),
  )
  const writable = uses.filter(({ id }) => ids.has(id))
  if (writable.length > 0) await updateKeyUses(trx, writable)
}
