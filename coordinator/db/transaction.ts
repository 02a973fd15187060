// Transactions. A nested transaction joins the outer transaction. onCommit callbacks run after the outermost commit.
import type { SelectQueryBuilder, Transaction } from 'kysely'
import { dialectTraits } from './dialects.ts'
import type { Db } from './open.ts'
import type { Tables } from './schema.ts'
import { RetryTransactionError, runInsideTransaction } from './sqlite-driver.ts'

export type Trx = Transaction<Tables>
/** Runs `fn` after the outermost transaction commits. Does not run it after a rollback. */
export type OnCommit = (fn: () => void) => void

/** The onCommit callbacks of each open transaction. */
const callbacksByTransaction = new WeakMap<Db, (() => void)[]>()

/**
 * Runs `fn` in a transaction, which commits when `fn` resolves and rolls back when `fn` rejects. When `db` is a
 * transaction already, `fn` runs in `db`. All queries in `fn` must use `trx`. `fn` must be fast: SQLite has one
 * connection, so all other queries wait until the transaction ends. When the disk was full and space has become free,
 * `fn` runs a second time.
 */
export async function transaction<T>(
  db: Db | Trx,
  fn: (trx: Trx, onCommit: OnCommit) => Promise<T>,
): Promise<T> {
  const outerCallbacks = callbacksByTransaction.get(db)
  if (outerCallbacks) return fn(db as Trx, (callback) => outerCallbacks.push(callback))
  try {
    return await runTransaction(db, fn)
  } catch (error) {
    if (!(error instanceof RetryTransactionError)) throw error
    return runTransaction(db, fn)
  }
}

async function runTransaction<T>(db: Db, fn: (trx: Trx, onCommit: OnCommit) => Promise<T>): Promise<T> {
  const callbacks: (() => void)[] = []
  const result = await db.transaction().execute((trx) => {
    callbacksByTransaction.set(trx, callbacks)
    return runInsideTransaction(() => fn(trx, (callback) => callbacks.push(callback)))
  })
  for (const callback of callbacks) callback()
  return result
}

/** Adds `for update` where the database has row locks: the rows cannot change until the transaction ends. */
export function forUpdate<T extends keyof Tables, O>(
  trx: Trx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return dialectTraits(trx).locksRows ? query.forUpdate() : query
}
