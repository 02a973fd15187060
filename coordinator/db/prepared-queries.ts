// Prepares frequent queries: the SQL is compiled once and executed with new parameters each time. SQLite executes them
// immediately, unless they have to wait for the connection.
import type { CompiledQuery, QueryResult } from 'kysely'
import { executeImmediately } from './immediate-queries.ts'
import type { Db } from './open.ts'
import type { Trx } from './transaction.ts'

/**
 * Compiles a query. `buildQuery` uses placeholder strings as values, in the order of the parameters. The returned function
 * executes the query with the actual parameters and resolves with its rows.
 */
export function prepareQuery<Row, Params extends readonly string[]>(
  db: Db,
  buildQuery: (db: Db) => { compile(): CompiledQuery<Row> },
): (...parameters: Params) => Promise<Row[]> {
  const compiled = buildQuery(db).compile()
  return async (...parameters) => (await execute(db, compiled, parameters)).rows
}

function execute<Row>(
  db: Db | Trx,
  compiled: CompiledQuery<Row>,
  parameters: readonly unknown[],
): QueryResult<Row> | Promise<QueryResult<Row>> {
  const query = { ...compiled, parameters }
  return executeImmediately(db, query) ?? db.executeQuery(query)
}

/** Compiles the query on its first use, once per database. */
function compileOnce<Row>(
  buildQuery: (trx: Trx) => { compile(): CompiledQuery<Row> },
): (trx: Trx) => CompiledQuery<Row> {
  const compiledByAdapter = new WeakMap<object, CompiledQuery<Row>>()
  return (trx) => {
    const { adapter } = trx.getExecutor()
    let query = compiledByAdapter.get(adapter)
    if (query === undefined) {
      query = buildQuery(trx).compile()
      compiledByAdapter.set(adapter, query)
    }
    return query
  }
}

/** Prepares a query like prepareQuery(), for use inside transactions. */
export function prepareTrxQuery<Row>(
  buildQuery: (trx: Trx) => { compile(): CompiledQuery<Row> },
): (trx: Trx, parameters: readonly unknown[]) => Promise<Row[]> {
  const getQuery = compileOnce(buildQuery)
  return async (trx, parameters) => (await execute(trx, getQuery(trx), parameters)).rows
}

/**
 * Prepares an insert, update or delete for use inside transactions. The query is compiled once per database, on its first
 * use. `buildQuery` uses placeholder values, in the order of the parameters. A placeholder must not be null. The returned
 * function executes the query with the actual parameters and resolves with the number of affected rows.
 */
export function prepareWrite(
  buildQuery: (trx: Trx) => { compile(): CompiledQuery<unknown> },
): (trx: Trx, parameters: readonly unknown[]) => Promise<number> {
  const getQuery = compileOnce(buildQuery)
  return async (trx, parameters) => {
    const { numAffectedRows } = await execute(trx, getQuery(trx), parameters)
    return Number(numAffectedRows ?? 0n)
  }
}
