// Queries of the request path: compiled once, run with other parameters.
import type { CompiledQuery } from 'kysely'
import type { Db } from './open.ts'

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
