// Opens a Postgres database, for one coordinator or for several that share it.
import type { Dialect, Driver } from 'kysely'
import type { Client, Pool, PoolClient } from 'pg'
import type { Logger } from 'pino'
import { postgresDialect } from '../dialects.ts'
import { lockSqliteFile } from '../sqlite-file.ts'
import { type Connector, createConnector } from './connect.ts'
import { acquireCoordinatorLock, type CoordinatorLock } from './coordinator-lock.ts'
import { SharedConnection, type SharedConnectionOptions } from './shared-connection.ts'

export type PostgresConfig = {
  /** postgres://user:password@host:port/database */
  url: string
  log: Pick<Logger, 'warn' | 'error'>
  /** Set when other coordinators use the database at the same time. Default: this one uses it alone. */
  shared?: Pick<SharedConnectionOptions, 'probeMs'>
  /** The database file of the data directory, which must be empty. Locked while the database is open. */
  lockFile?: string
  /** @param description the database, server and user, without the password */
  onOpen?(description: string): Promise<void>
  /** Another coordinator has got the database alone: this one must stop. */
  onTaken(error: Error): void
}

export type OpenedPostgres = {
  dialect: Dialect
  /** Its statements may take any time. Destroy the database that uses it. */
  createMigrationDialect(): Dialect
  /** null: no other coordinator uses the database. */
  sharedConnection: SharedConnection | null
  close(): Promise<void>
}

/** The limit also bounds what a slow database can delay: each query needs a connection. */
const MAX_CONNECTIONS = 10
const STATEMENT_TIMEOUT_MS = 30_000
/** Releases the row locks of a coordinator whose machine has disappeared. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000
/** The same, where other coordinators wait for the row locks: when one of them has lost its lease, they are free. */
const SHARED_IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000

/** @param waitMs how long to wait for another coordinator. Throws Errors whose messages are meant for the operator. */
export async function openPostgres(config: PostgresConfig, waitMs: number): Promise<OpenedPostgres> {
  const directoryLock = config.lockFile === undefined ? null : lockSqliteFile(config.lockFile, waitMs)
  try {
    const connector = await createConnector(config.url)
    await checkRights(connector)
    const { description, connect } = connector
    const lockOptions = { log: config.log, onTaken: config.onTaken, connect, description, waitMs }
    const sharedConnection =
      config.shared === undefined ? null : await SharedConnection.open({ ...lockOptions, ...config.shared })
    const lock = sharedConnection ?? (await acquireCoordinatorLock(lockOptions))
    await config.onOpen?.(description)
    const close = async () => {
      await lock.close()
      directoryLock?.close()
    }
    const dialects = createDialects(connector, { lock, sharedConnection }, close)
    return { ...dialects, sharedConnection, close }
  } catch (error) {
    directoryLock?.close()
    throw error
  }
}

function createDialects(
  { createPool }: Connector,
  { lock, sharedConnection }: { lock: CoordinatorLock; sharedConnection: SharedConnection | null },
  close: () => Promise<void>,
): Pick<OpenedPostgres, 'dialect' | 'createMigrationDialect'> {
  const pool = createPool({
    max: MAX_CONNECTIONS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout:
      sharedConnection === null ? IDLE_IN_TRANSACTION_TIMEOUT_MS : SHARED_IDLE_IN_TRANSACTION_TIMEOUT_MS,
  })
  if (sharedConnection !== null) sharedConnection.closeConnections = trackConnections(pool)
  const dialect = postgresDialect(pool)
  return {
    dialect: { ...dialect, createDriver: () => requireLock(dialect.createDriver(), lock, close) },
    createMigrationDialect: () => postgresDialect(createPool({ max: 1 })),
  }
}

/** Returns a function that closes all connections of the pool, without a message to the server. */
function trackConnections(pool: Pool): () => void {
  const clients = new Set<PoolClient>()
  pool.on('connect', (client) => clients.add(client))
  pool.on('remove', (client) => clients.delete(client))
  return () => {
    for (const client of clients) (client as unknown as Client).connection.stream.destroy()
  }
}

/** Returns why a coordinator cannot use the database, without checking its lock; null: it can. */
export async function findPostgresProblem(url: string): Promise<string | null> {
  try {
    await checkRights(await createConnector(url))
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** The migrations create tables. */
async function checkRights({ connect, description }: Connector): Promise<void> {
  const client = await connect({})
  try {
    const { rows } = await client.query(
      "select has_schema_privilege(current_schema(), 'create') as permitted",
    )
    if (rows[0].permitted !== true)
      throw new Error(
        `The user may not create tables in the database ${description}. Make the user the owner of the database.`,
      )
  } finally {
    await client.end()
  }
}

/** Queries wait until a lost lock is regained. A coordinator that shares the database waits for no lock. */
function requireLock(driver: Driver, lock: CoordinatorLock, close: () => Promise<void>): Driver {
  return {
    init: (options) => driver.init(options),
    async acquireConnection(options) {
      if (!lock.isHeld) await lock.waitUntilHeld()
      return driver.acquireConnection(options)
    },
    // The server may have another default, with which a transaction does not see what was committed while it waited for a lock.
    beginTransaction: (connection, settings) =>
      driver.beginTransaction(connection, {
        ...settings,
        isolationLevel: settings.isolationLevel ?? 'read committed',
      }),
    commitTransaction: (connection) => driver.commitTransaction(connection),
    rollbackTransaction: (connection) => driver.rollbackTransaction(connection),
    releaseConnection: (connection, options) => driver.releaseConnection(connection, options),
    async destroy(options) {
      await driver.destroy(options)
      await close()
    },
  }
}
