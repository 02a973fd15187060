// The two databases as Kysely dialects, and what differs between them, by name.
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

export type Traits = {
  /** Rows are locked by `for update`; without it, transactions run one after the other. */
  readonly locksRows: boolean
  /** The data can have several coordinators at once: leases found at start may be somebody's. */
  readonly sharedByCoordinators: boolean
  /** Growing numbers come from `generated … as identity` instead of `autoincrement`. */
  readonly identityColumns: boolean
  /** What a column of bytes is called. */
  readonly bytesType: 'blob' | 'bytea'
}

class NodeSqliteAdapter extends SqliteAdapter {
  readonly traits: Traits = {
    locksRows: false,
    sharedByCoordinators: false,
    identityColumns: false,
    bytesType: 'blob',
  }
  /** It does, whatever Kysely says: a migration that stops half-way leaves nothing behind. */
  override get supportsTransactionalDdl() {
    return true
  }
  /** To Kysely only: the driver takes turns itself, so that it can refuse what would wait for ever. */
  override get supportsMultipleConnections() {
    return true
  }
}

class SharedPostgresAdapter extends PostgresAdapter {
  readonly traits: Traits = {
    locksRows: true,
    sharedByCoordinators: true,
    identityColumns: true,
    bytesType: 'bytea',
  }
}

export function sqliteDialect(database: DatabaseSync): Dialect {
  return {
    createAdapter: () => new NodeSqliteAdapter(),
    createDriver: () => new NodeSqliteDriver(database),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  }
}

export function postgresDialect(pool: PostgresPool): Dialect {
  const base = new PostgresDialect({ pool })
  return {
    createAdapter: () => new SharedPostgresAdapter(),
    createDriver: () => base.createDriver(),
    createQueryCompiler: () => base.createQueryCompiler(),
    createIntrospector: (db) => base.createIntrospector(db),
  }
}

/** Of the database behind `db`, which may be a transaction. */
export function traitsOf(db: { getExecutor(): { adapter: object } }): Traits {
  const { adapter } = db.getExecutor()
  if (adapter instanceof NodeSqliteAdapter || adapter instanceof SharedPostgresAdapter) return adapter.traits
  throw new Error('This database was not opened by openDatabase.')
}

const INT8 = 20

/**
 * `types` of a pg pool: instants are 64-bit integers there, which pg would hand out as strings.
 * @param builtin pg's own `types.getTypeParser`.
 */
export const postgresTypes = <F extends (oid: number, format?: 'text' | 'binary') => unknown>(
  builtin: F,
) => ({
  getTypeParser: (oid: number, format?: 'text' | 'binary') => (oid === INT8 ? Number : builtin(oid, format)),
})
