// Measures queries and transactions of any dialect, for metrics.
import type { CompiledQuery, DatabaseConnection, Driver, LogEvent, TransactionSettings } from 'kysely'

export const QUERY_OPERATIONS = ['select', 'insert', 'update', 'delete', 'other'] as const
export type QueryOperation = (typeof QUERY_OPERATIONS)[number]

/** All durations are in milliseconds. */
export type StoreObserver = {
  /** A query has run. `begin`, `commit` and `rollback` are not queries. */
  onQuery(operation: QueryOperation, ms: number, failed: boolean): void
  /** @param waitMs how long the caller has waited for a free connection */
  onAcquire(waitMs: number): void
  /** @param ms since its begin. @param endMs of which the commit or rollback took */
  onTransaction(outcome: 'commit' | 'rollback', ms: number, endMs: number): void
}

const OPERATIONS: Readonly<Record<string, QueryOperation>> = {
  SelectQueryNode: 'select',
  InsertQueryNode: 'insert',
  UpdateQueryNode: 'update',
  DeleteQueryNode: 'delete',
}

const TRANSACTION_CONTROL = /^(begin|start transaction|commit|rollback)\b/

/** Kysely's `log` option. */
export const logQueries =
  ({ onQuery }: StoreObserver) =>
  ({ query, queryDurationMillis, level }: LogEvent): void => {
    const operation = OPERATIONS[query.query.kind] ?? 'other'
    if (operation === 'other' && TRANSACTION_CONTROL.test(query.sql)) return
    onQuery(operation, queryDurationMillis, level === 'error')
  }

/** Measures a query that Kysely does not log. */
export function observeQuery<T>(observer: StoreObserver, query: CompiledQuery, execute: () => T): T {
  const operation = OPERATIONS[query.query.kind] ?? 'other'
  const startedAt = performance.now()
  let failed = true
  try {
    const result = execute()
    failed = false
    return result
  } finally {
    observer.onQuery(operation, performance.now() - startedAt, failed)
  }
}

/** Does not support savepoints. */
export function observeDriver(driver: Driver, observer: StoreObserver): Driver {
  const startTimes = new WeakMap<DatabaseConnection, number>()

  async function measureEnd(
    outcome: 'commit' | 'rollback',
    connection: DatabaseConnection,
    end: () => Promise<void>,
  ): Promise<void> {
    const startedAt = performance.now()
    await end()
    const now = performance.now()
    observer.onTransaction(outcome, now - (startTimes.get(connection) ?? startedAt), now - startedAt)
  }

  return {
    init: (options) => driver.init(options),
    async acquireConnection(options) {
      const startedAt = performance.now()
      const connection = await driver.acquireConnection(options)
      observer.onAcquire(performance.now() - startedAt)
      return connection
    },
    async beginTransaction(connection, settings: TransactionSettings) {
      startTimes.set(connection, performance.now())
      await driver.beginTransaction(connection, settings)
    },
    commitTransaction: (connection) =>
      measureEnd('commit', connection, () => driver.commitTransaction(connection)),
    rollbackTransaction: (connection) =>
      measureEnd('rollback', connection, () => driver.rollbackTransaction(connection)),
    releaseConnection: (connection, options) => driver.releaseConnection(connection, options),
    destroy: (options) => driver.destroy(options),
  }
}
