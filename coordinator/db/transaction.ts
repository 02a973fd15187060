// Transactions: a nested one joins the outer one, and onCommit callbacks run after the outermost commit.
import type { SelectQueryBuilder, Transaction } from 'kysely'
import { dialectTraits } from './dialects.ts'
import type { Db } from './open.ts'
import type { Tables } from './schema.ts'
import { runInsideTransaction } from './sqlite-driver.ts'

export type Trx = Transaction<Tables>
/** Runs `fn` after the outermost transaction commits. Does not run it after a rollback. */
export type OnCommit = (fn: () => void) => void

const callbacks = new WeakMap<Db, (() => void)[]>()

/**
 * Runs `fn` in a transaction, which commits when `fn` returns and rolls back when it throws. When `db` is a transaction,
 * `fn` runs in that one. All queries in `fn` must use `trx`. SQLite has one connection, so `fn` must not wait for
 * anything slow.
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
    return runInsideTransaction(() => fn(trx, (callback) => pending.push(callback)))
  })
  for (const callback of pending) callback()
  return result
}

/** Adds `for update` where the database has row locks: the rows cannot change until the transaction ends. */
export function forUpdate<T extends keyof Tables, O>(
  trx: Trx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return dialectTraits(trx).locksRows ? query.forUpdate() : query
}
