// Kysely's driver for node:sqlite: one connection, taken in turn, with prepared statements kept by their text.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { QueryResult } from 'kysely'
import { CompiledQuery as Compiled, type CompiledQuery, type DatabaseConnection, type Driver } from 'kysely'

/** Far above the number of different texts the coordinator has; lists of varying length make the rest. */
const STATEMENTS_KEPT = 500

type Statement = { prepared: StatementSync; returnsRows: boolean }

/**
 * Marks code that runs inside a transaction. With one connection, a query there that does not go through the
 * transaction would wait for it for ever: it is refused instead.
 */
const inTransaction = new AsyncLocalStorage<{ open: boolean }>()

/** Runs `fn` as the inside of a transaction, for the check above. */
export async function insideTransaction<T>(fn: () => Promise<T>): Promise<T> {
  const mark = { open: true }
  try {
    return await inTransaction.run(mark, fn)
  } finally {
    mark.open = false
  }
}

class Connection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, Statement>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { prepared, returnsRows } = this.#statement(query.sql)
    const parameters = query.parameters.map(toSqlite)
    if (returnsRows) return { rows: prepared.all(...parameters) as R[] }
    const { changes } = prepared.run(...parameters)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    // Not from the cache: a statement has one cursor.
    const statement = this.#database.prepare(query.sql)
    for (const row of statement.iterate(...query.parameters.map(toSqlite))) yield { rows: [row as R] }
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known) return known
    const prepared = this.#database.prepare(sql)
    const statement = { prepared, returnsRows: prepared.columns().length > 0 }
    if (this.#statements.size >= STATEMENTS_KEPT) {
      const [oldest] = this.#statements.keys()
      if (oldest !== undefined) this.#statements.delete(oldest)
    }
    this.#statements.set(sql, statement)
    return statement
  }
}

function toSqlite(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  return value as SQLInputValue
}

export class NodeSqliteDriver implements Driver {
  readonly #database: DatabaseSync
  readonly #connection: Connection
  readonly #waiting: (() => void)[] = []
  #taken = false

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#connection = new Connection(database)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    if (inTransaction.getStore()?.open) {
      throw new Error('A query inside a transaction must go through the transaction.')
    }
    if (this.#taken) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#taken = true
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    const next = this.#waiting.shift()
    // Handed over while still taken: nobody can slip in before the one that waited longest.
    if (next) next()
    else this.#taken = false
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Compiled.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Compiled.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // SQLite itself rolls back on some errors (a full disk): then there is nothing left to roll back.
    if (this.#database.isTransaction) await connection.executeQuery(Compiled.raw('rollback'))
  }

  async destroy(): Promise<void> {
    this.#database.close()
  }
}
