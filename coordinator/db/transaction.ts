// Transactions: all or nothing, one inside another joins it, and onCommit for what must only happen afterwards.
import type { SelectQueryBuilder, Transaction } from 'kysely'
import { traitsOf } from './dialects.ts'
import type { Db } from './open.ts'
import type { Tables } from './schema.ts'
import { insideTransaction } from './sqlite-driver.ts'

export type Trx = Transaction<Tables>
/** Runs `fn` once the outermost transaction has committed; never when it is rolled back. */
export type OnCommit = (fn: () => void) => void

const callbacks = new WeakMap<Db, (() => void)[]>()

/**
 * Runs `fn` in a transaction, which commits when it returns and rolls back when it throws. Given a transaction
 * instead of the database, `fn` becomes a part of it. Inside, every query goes through `trx`; SQLite has one
 * connection, so do not wait for anything slow in there.
 */
export async function transaction<T>(
  db: Db | Trx,
  fn: (trx: Trx, onCommit: OnCommit) => Promise<T>,
): Promise<T> {
  const outer = callbacks.get(db)
  if (outer) return fn(db as Trx, (callback) => outer.push(callback))
  const pending: (() => void)[] = []
  const result = await db.transaction().execute((trx) => {
    callbacks.set(trx, pending)
    return insideTransaction(() => fn(trx, (callback) => pending.push(callback)))
  })
  for (const callback of pending) callback()
  return result
}

/** Adds `for update` where rows are locked by it: what is read stays so until the transaction ends. */
export function locked<T extends keyof Tables, O>(
  trx: Trx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return traitsOf(trx).locksRows ? query.forUpdate() : query
}
