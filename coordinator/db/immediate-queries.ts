// Executes queries on SQLite without the promises and the connection queue of Kysely.
import type { CompiledQuery, Kysely, QueryResult } from 'kysely'
import { observeQuery, type StoreObserver } from './observed-driver.ts'
import type { Tables } from './schema.ts'
import type { NodeSqliteDriver } from './sqlite-driver.ts'

/** A database or a transaction. */
type Queryable = Pick<Kysely<Tables>, 'getExecutor' | 'isTransaction'>

/** A database and its transactions have one adapter. */
const byAdapter = new WeakMap<object, { driver: NodeSqliteDriver; observer: StoreObserver | undefined }>()

export function enableImmediateQueries(
  db: Queryable,
  driver: NodeSqliteDriver,
  observer: StoreObserver | undefined,
): void {
  byAdapter.set(db.getExecutor().adapter, { driver, observer })
}

/**
 * Executes a query before it returns. null: the query has to wait for the connection, or for Postgres, or its transaction
 * has ended, and Kysely rejects it.
 */
export function executeImmediately<Row>(db: Queryable, query: CompiledQuery<Row>): QueryResult<Row> | null {
  const immediate = byAdapter.get(db.getExecutor().adapter)
  if (immediate === undefined) return null
  const { driver, observer } = immediate
  if (!(db.isTransaction ? driver.isInsideTransaction : driver.isFree)) return null
  if (!db.isTransaction) observer?.onAcquire(0)
  const execute = () => driver.execute<Row>(query)
  return observer === undefined ? execute() : observeQuery(observer, query, execute)
}
