// Kysely driver for node:sqlite: one connection with a FIFO queue, and a cache of prepared statements.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { QueryResult } from 'kysely'
import { CompiledQuery as Compiled, type CompiledQuery, type DatabaseConnection, type Driver } from 'kysely'

/** Far more than the coordinator has queries: only lists of varying length (`in (?, ?, …)`) add more texts. */
const MAX_CACHED_STATEMENTS = 500

type Statement = { prepared: StatementSync; returnsRows: boolean }

/**
 * Tracks which code runs inside a transaction. There is only one connection, so a query that does not use the open
 * transaction would deadlock. The driver throws instead.
 */
const transactionScope = new AsyncLocalStorage<{ open: boolean }>()

const SQLITE_FULL = 13

/** Thrown when the disk was full, which has rolled the transaction back, and space has become free since. */
export class RetryTransactionError extends Error {
  override name = 'RetryTransactionError'
}

/** Runs `fn` with the scope above. */
export async function runInsideTransaction<T>(fn: () => Promise<T>): Promise<T> {
  const scope = { open: true }
  try {
    return await transactionScope.run(scope, fn)
  } finally {
    scope.open = false
  }
}

class Connection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #freeDiskSpace: () => boolean
  readonly #statements = new Map<string, Statement>()

  constructor(database: DatabaseSync, freeDiskSpace: () => boolean) {
    this.#database = database
    this.#freeDiskSpace = freeDiskSpace
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.execute(query)
  }

  execute<R>(query: CompiledQuery): QueryResult<R> {
    const wasInTransaction = this.#database.isTransaction
    try {
      return this.#execute(query)
    } catch (error) {
      if (!isDiskFull(error) || !this.#freeDiskSpace()) throw error
      if (wasInTransaction) throw new RetryTransactionError('the disk was full', { cause: error })
      return this.#execute(query)
    }
  }

  #execute<R>(query: CompiledQuery): QueryResult<R> {
    const { prepared, returnsRows } = this.#statement(query.sql)
    const parameters = query.parameters.map(toSqlite)
    if (returnsRows) return { rows: prepared.all(...parameters) as R[] }
    const { changes } = prepared.run(...parameters)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    // The statement is not cached, because it has only one cursor.
    const statement = this.#database.prepare(query.sql)
    for (const row of statement.iterate(...query.parameters.map(toSqlite))) yield { rows: [row as R] }
  }

  #statement(sql: string): Statement {
    const cached = this.#statements.get(sql)
    if (cached) return cached
    const prepared = this.#database.prepare(sql)
    const statement = { prepared, returnsRows: prepared.columns().length > 0 }
    if (this.#statements.size >= MAX_CACHED_STATEMENTS) {
      const [oldest] = this.#statements.keys()
      if (oldest !== undefined) this.#statements.delete(oldest)
    }
    this.#statements.set(sql, statement)
    return statement
  }
}

const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_FULL

function toSqlite(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  return value as SQLInputValue
}

export class NodeSqliteDriver implements Driver {
  readonly #database: DatabaseSync
  readonly #connection: Connection
  readonly #waiting: (() => void)[] = []
  #acquired = false

  /** @param freeDiskSpace called when the disk is full; true: space has become free, so the query is repeated */
  constructor(database: DatabaseSync, freeDiskSpace: () => boolean) {
    this.#database = database
    this.#connection = new Connection(database, freeDiskSpace)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    if (transactionScope.getStore()?.open) {
      throw new Error('A query inside a transaction must go through the transaction.')
    }
    if (this.#acquired) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#acquired = true
    return this.#connection
  }

  /** Whether neither a query nor a transaction uses the connection. */
  get isFree(): boolean {
    return !this.#acquired
  }

  /** Whether the caller runs inside a transaction that has not ended. */
  get isInsideTransaction(): boolean {
    return transactionScope.getStore()?.open ?? false
  }

  /** Executes a query immediately: of the open transaction, or of none while the connection is free. */
  execute<R>(query: CompiledQuery<R>): QueryResult<R> {
    return this.#connection.execute(query)
  }

  async releaseConnection(): Promise<void> {
    const next = this.#waiting.shift()
    // #acquired stays true while the connection passes to the next waiter, so no later caller overtakes it.
    if (next) next()
    else this.#acquired = false
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Compiled.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Compiled.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // SQLite rolls back by itself on some errors, such as a full disk.
    if (this.#database.isTransaction) await connection.executeQuery(Compiled.raw('rollback'))
  }

  async destroy(): Promise<void> {
    this.#database.close()
  }
}
