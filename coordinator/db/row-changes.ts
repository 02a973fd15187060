// Notifies subscribers of changed rows, after the commit. One coordinator writes the database, so the subscribers are in its
// process: nothing is polled, and the database has no triggers. `npm run check` finds writes that do not notify
// (test/support/row-notifications.ts).
import type { Db } from './open.ts'
import { afterCommit, beforeCommit, type Trx } from './transaction.ts'

/** A deleted row cannot be read any more. These fields decide who could see it (http/visibility.ts). */
export type DeletedRow = { workspaceId: string; boxId: string; ownerUserId: string }

export type RowChange = {
  table: 'boxes' | 'snapshots' | 'operations'
  id: string
  /** Set when the row was deleted. Otherwise it was inserted or updated. */
  deleted?: DeletedRow
}

export type RowSubscriber = (change: RowChange) => void

/** The subscribers of each database. A database and its transactions have one adapter. */
const subscribersByAdapter = new WeakMap<object, Set<RowSubscriber>>()

/** Runs at the end of the transaction that has changed the row. A rejection rolls the transaction back. */
export type RowObserver = (trx: Trx, change: Pick<RowChange, 'table' | 'id'>) => Promise<void>

const observersByAdapter = new WeakMap<object, RowObserver>()

/** The rows for which the observer of each transaction runs. */
const observedRows = new WeakMap<Trx, Set<string>>()

/**
 * Runs `observer` for each row that the transaction has changed, before the commit. Without an observer, no transaction has more
 * queries.
 */
export function observeRows(db: Db, observer: RowObserver): void {
  observersByAdapter.set(db.getExecutor().adapter, observer)
}

/** Notifies the subscribers after the outermost transaction commits. Does not notify them after a rollback. */
export function recordRowChange(trx: Trx, change: RowChange): void {
  const { adapter } = trx.getExecutor()
  const observer = observersByAdapter.get(adapter)
  if (observer) observeOnce(trx, change, observer)
  afterCommit(trx, () => {
    for (const subscriber of subscribersByAdapter.get(adapter) ?? []) subscriber(change)
  })
}

function observeOnce(trx: Trx, { table, id }: RowChange, observer: RowObserver): void {
  const observed = observedRows.get(trx) ?? new Set()
  observedRows.set(trx, observed)
  if (observed.has(`${table} ${id}`)) return
  observed.add(`${table} ${id}`)
  beforeCommit(trx, () => {
    // A later change of the row, by another function that runs before the commit, is observed again.
    observed.delete(`${table} ${id}`)
    return observer(trx, { table, id })
  })
}

/**
 * A read that starts after the call has all changes that `subscriber` does not get.
 * @param subscriber is called synchronously after each commit, and must not throw
 * @returns a function that ends the subscription
 */
export function subscribeToRows(db: Db, subscriber: RowSubscriber): () => void {
  const { adapter } = db.getExecutor()
  const subscribers = subscribersByAdapter.get(adapter) ?? new Set()
  subscribersByAdapter.set(adapter, subscribers.add(subscriber))
  return () => void subscribers.delete(subscriber)
}
