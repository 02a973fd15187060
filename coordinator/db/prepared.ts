// Queries that are compiled once and run with new parameters each time, for the request path.
import type { CompiledQuery } from 'kysely'
import type { Db } from './open.ts'
import type { Trx } from './transaction.ts'

/**
 * Compiles a query once per database. `build` uses placeholder strings as values, in the order of the parameters.
 * The returned function runs the query with the actual parameters.
 */
export function preparedQuery<R, P extends readonly string[]>(
  db: Db,
  build: (db: Db) => { compile(): CompiledQuery<R> },
): (...parameters: P) => Promise<R[]> {
  const compiled = build(db).compile()
  return async (...parameters) => (await db.executeQuery<R>({ ...compiled, parameters })).rows
}

/**
 * Compiles a write once per dialect, for use inside transactions. `build` uses placeholder values, in the order of the
 * parameters; null is not allowed as one. The returned function runs the query with the actual parameters and resolves
 * with the number of affected rows.
 */
export function preparedWrite(
  build: (db: Db | Trx) => { compile(): CompiledQuery<unknown> },
): (trx: Trx, parameters: readonly unknown[]) => Promise<number> {
  const compiled = new WeakMap<object, CompiledQuery<unknown>>()
  return async (trx, parameters) => {
    const { adapter } = trx.getExecutor()
    let query = compiled.get(adapter)
    if (query === undefined) {
      query = build(trx).compile()
      compiled.set(adapter, query)
    }
    const { numAffectedRows } = await trx.executeQuery({ ...query, parameters })
    return Number(numAffectedRows ?? 0n)
  }
}
