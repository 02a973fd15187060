// Queries of the request path: compiled once, run with other parameters.
import type { CompiledQuery } from 'kysely'
import type { Db } from './open.ts'
import type { Trx } from './transaction.ts'

/**
 * Compiles a query once per database. `build` gets placeholder strings, in the order of the parameters;
 * the returned function runs the query with real ones.
 */
export function hotQuery<R, P extends readonly string[]>(
  db: Db,
  build: (db: Db) => { compile(): CompiledQuery<R> },
): (...parameters: P) => Promise<R[]> {
  const compiled = build(db).compile()
  return async (...parameters) => (await db.executeQuery<R>({ ...compiled, parameters })).rows
}

/**
 * The same for a write inside a transaction. `build` gets values only for the order of the parameters, and
 * must not use null among them: the returned function takes the real ones. It resolves with how many rows it wrote.
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
