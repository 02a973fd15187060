// The Kysely dialects for SQLite and Postgres, and the named traits in which they differ.
import type { DatabaseSync } from 'node:sqlite'
import {
  type Dialect,
  PostgresAdapter,
  PostgresDialect,
  type PostgresPool,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { NodeSqliteDriver } from './sqlite-driver.ts'

export type DialectTraits = {
  /** `select … for update` locks rows. Otherwise transactions run one at a time. */
  readonly locksRows: boolean
  /** Sequence numbers are `generated … as identity` columns instead of `autoincrement`. */
  readonly identityColumns: boolean
  /** The column type for bytes. */
  readonly bytesType: 'blob' | 'bytea'
  /** The operators of JSON take values of a type of their own. Otherwise they take text. */
  readonly jsonType: boolean
  /** SQL: the time at which the statement runs, in milliseconds since the epoch, by the clock of the database. */
  readonly currentTime: string
}

class NodeSqliteAdapter extends SqliteAdapter {
  readonly database: DatabaseSync

  constructor(database: DatabaseSync) {
    super()
    this.database = database
  }

  readonly traits: DialectTraits = {
    locksRows: false,
    identityColumns: false,
    bytesType: 'blob',
    jsonType: false,
    currentTime: "cast(unixepoch('subsec') * 1000 as integer)",
  }
  /** SQLite has transactional DDL, though Kysely's adapter says no: a failed migration is rolled back. */
  override get supportsTransactionalDdl() {
    return true
  }
  /** Disables Kysely's own queue for the connection: the driver has one, which also detects deadlocks. */
  override get supportsMultipleConnections() {
    return true
  }
}

class BoxwoodPostgresAdapter extends PostgresAdapter {
  readonly traits: DialectTraits = {
    locksRows: true,
    identityColumns: true,
    bytesType: 'bytea',
    jsonType: true,
    currentTime: '(extract(epoch from clock_timestamp()) * 1000)::bigint',
  }
}

export function sqliteDialect(database: DatabaseSync, freeDiskSpace: () => boolean): Dialect {
  return {
    createAdapter: () => new NodeSqliteAdapter(database),
    createDriver: () => new NodeSqliteDriver(database, freeDiskSpace),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  }
}

export function postgresDialect(pool: PostgresPool): Dialect {
  const base = new PostgresDialect({ pool })
  return {
    createAdapter: () => new BoxwoodPostgresAdapter(),
    createDriver: () => base.createDriver(),
    createQueryCompiler: () => base.createQueryCompiler(),
    createIntrospector: (db) => base.createIntrospector(db),
  }
}

/** The traits of a database or transaction. */
export function dialectTraits(db: { getExecutor(): { adapter: object } }): DialectTraits {
  const { adapter } = db.getExecutor()
  if (adapter instanceof NodeSqliteAdapter || adapter instanceof BoxwoodPostgresAdapter) return adapter.traits
  throw new Error('This database was not opened by openDatabase.')
}

/** The SQLite database of a Kysely instance; null: it uses Postgres. */
export function findSqliteDatabase(db: { getExecutor(): { adapter: object } }): DatabaseSync | null {
  const { adapter } = db.getExecutor()
  return adapter instanceof NodeSqliteAdapter ? adapter.database : null
}

/** The OID of Postgres' 64-bit integer type. */
const INT8_OID = 20

/**
 * The `types` option of a pg pool. Parses 64-bit integers, such as instants, as numbers: pg returns strings by default.
 * @param builtin pg's own `types.getTypeParser`.
 */
export const postgresTypes = <F extends (oid: number, format?: 'text' | 'binary') => unknown>(
  builtin: F,
) => ({
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8_OID ? Number : builtin(oid, format),
})
