// Transactions. A nested transaction joins the outer transaction. beforeCommit callbacks
// run at the end of the outermost transaction, onCommit callbacks after its commit. notifications.ts uses both.
import type { SelectQueryBuilder, Transaction } from 'kysely'
import { dialectTraits } from './dialects.ts'
import type { Db } from './open.ts'
import type { Tables } from './schema.ts'
import { RetryTransactionError, runInsideTransaction } from './sqlite-driver.ts'

export type Trx = Transaction<Tables>
/** Runs `fn` after the outermost transaction commits. Does not run it after a rollback. */
export type OnCommit = (fn: () => void) => void

export type TransactionOptions = {
  /**
   * Notifies only the subscribers of this coordinator (notifications.ts), for transactions that run all the time: a NOTIFY makes
   * all commits of a Postgres server wait for each other. A nested transaction has the option of the outermost one.
   */
  notifiesLocally?: boolean
}

type Callbacks = {
  beforeCommit: (() => Promise<void>)[]
  /** Runs after those of `beforeCommit`. */
  last: (() => Promise<void>) | null
  onCommit: (() => void)[]
  notifiesLocally: boolean
}

/** The callbacks of each open transaction. */
const callbacksByTransaction = new WeakMap<Db, Callbacks>()

/**
 * Runs `fn` in a transaction, which commits when `fn` resolves and rolls back when `fn` rejects. When `db` is a
 * transaction already, `fn` runs in `db`. All queries in `fn` must use `trx`. `fn` must be fast: SQLite has one
 * connection, so all other queries wait until the transaction ends. When the disk was full and space has become free,
 * `fn` runs a second time.
 */
export async function transaction<T>(
  db: Db | Trx,
  fn: (trx: Trx, onCommit: OnCommit) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const outerCallbacks = callbacksByTransaction.get(db)
  if (outerCallbacks) return fn(db as Trx, (callback) => outerCallbacks.onCommit.push(callback))
  try {
    return await runTransaction(db, fn, options)
  } catch (error) {
    if (!(error instanceof RetryTransactionError)) throw error
    return runTransaction(db, fn, options)
  }
}

async function runTransaction<T>(
  db: Db,
  fn: (trx: Trx, onCommit: OnCommit) => Promise<T>,
  { notifiesLocally = false }: TransactionOptions,
): Promise<T> {
  const callbacks: Callbacks = { beforeCommit: [], last: null, onCommit: [], notifiesLocally }
  const result = await db.transaction().execute((trx) => {
    callbacksByTransaction.set(trx, callbacks)
    return runInsideTransaction(async () => {
      const result = await fn(trx, (callback) => callbacks.onCommit.push(callback))
      for (const callback of callbacks.beforeCommit) await callback()
      await callbacks.last?.()
      return result
    })
  })
  for (const callback of callbacks.onCommit) callback()
  return result
}

/**
 * Runs `fn` at the end of the outermost transaction, before it commits. Use it for locks that many transactions need:
 * they are held briefly, and always acquired last, so that transactions do not wait for each other in a circle.
 */
export function beforeCommit(trx: Trx, fn: () => Promise<void>): void {
  getCallbacks(trx).beforeCommit.push(fn)
}

/** Runs `fn` after all callbacks of beforeCommit(), also those that are added later. A transaction has one such callback. */
export function setLastCallback(trx: Trx, fn: () => Promise<void>): void {
  const callbacks = getCallbacks(trx)
  if (callbacks.last !== null) throw new Error('the transaction has a last callback')
  callbacks.last = fn
}

/** See TransactionOptions. */
export const notifiesLocally = (trx: Trx): boolean => getCallbacks(trx).notifiesLocally

/** Runs `fn` after the commit, like the parameter `onCommit` of the function that transaction() runs. */
export function afterCommit(trx: Trx, fn: () => void): void {
  getCallbacks(trx).onCommit.push(fn)
}

function getCallbacks(trx: Trx): Callbacks {
  const callbacks = callbacksByTransaction.get(trx)
  if (!callbacks) throw new Error('needs a transaction that transaction() started')
  return callbacks
}

/**
 * Locks the rows where the database has row locks: they cannot change until the transaction ends. Rows that refer to them
 * can be inserted meanwhile. Each insert of a box or a snapshot refers to its workspace: the lock `for update` would make
 * inserts and transactions that lock the workspace wait for each other.
 */
export function forUpdate<T extends keyof Tables, O>(
  trx: Trx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return dialectTraits(trx).locksRows ? query.forNoKeyUpdate() : query
}
