// Notifies subscribers of changed rows, after the commit: nothing is polled, and the database has no triggers. `npm run check`
// finds writes that do not notify (test/support/row-notifications.ts).
import type { Origin } from './notification-hub.ts'
import { defineTopic, notify, type SubscribeOptions, subscribe } from './notifications.ts'
import type { Db } from './open.ts'
import { beforeCommit, type Trx } from './transaction.ts'

/** A deleted row cannot be read any more. These fields decide who could see it (http/visibility.ts). */
export type DeletedRow = { workspaceId: string; boxId: string; ownerUserId: string }

export type RowChange = {
  table: 'boxes' | 'snapshots' | 'operations'
  id: string
  /** Set when the row was deleted. Otherwise it was inserted or updated. */
  deleted?: DeletedRow
}

export type RowSubscriber = (change: RowChange, origin: Origin) => void

/** The report of an agent that has started, or of its machine, changes a row in a transaction of reports. */
const ROWS = defineTopic<RowChange>('rows', { mayBeLocal: true })

/** Runs at the end of the transaction that has changed the row. A rejection rolls the transaction back. */
export type RowObserver = (trx: Trx, change: Pick<RowChange, 'table' | 'id'>) => Promise<void>

/** A database and its transactions have one adapter. */
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
  notify(trx, ROWS, change)
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

/** See subscribe(). */
export const subscribeToRows = (db: Db, subscriber: RowSubscriber, options: SubscribeOptions): (() => void) =>
  subscribe(db, ROWS, subscriber, options)
