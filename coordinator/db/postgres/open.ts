// Opens a Postgres database for one coordinator.
import type { Dialect, Driver } from 'kysely'
import type { Logger } from 'pino'
import { postgresDialect } from '../dialects.ts'
import { lockSqliteFile } from '../sqlite-file.ts'
import { type Connector, createConnector } from './connect.ts'
import { acquireCoordinatorLock, type CoordinatorLock } from './coordinator-lock.ts'

export type PostgresConfig = {
  /** postgres://user:password@host:port/database */
  url: string
  log: Pick<Logger, 'warn' | 'error'>
  /** The database file of the data directory, which must be empty. Locked while the database is open. */
  lockFile?: string
  /** @param description the database, server and user, without the password */
  onOpen?(description: string): Promise<void>
  /** Another coordinator has got the database: this one must stop. */
  onTaken(error: Error): void
}

export type OpenedPostgres = {
  dialect: Dialect
  /** Its statements may take any time. Destroy the database that uses it. */
  createMigrationDialect(): Dialect
  close(): Promise<void>
}

/** The limit also bounds what a slow database can delay: each query needs a connection. */
const MAX_CONNECTIONS = 10
const STATEMENT_TIMEOUT_MS = 30_000
/** Releases the row locks of a coordinator whose machine has disappeared. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000

/** @param waitMs how long to wait for another coordinator. Throws Errors whose messages are meant for the operator. */
export async function openPostgres(config: PostgresConfig, waitMs: number): Promise<OpenedPostgres> {
  const directoryLock = config.lockFile === undefined ? null : lockSqliteFile(config.lockFile, waitMs)
  try {
    const connector = await createConnector(config.url)
    await checkRights(connector)
    const { description } = connector
    const lock = await acquireCoordinatorLock({ ...config, connect: connector.connect, description, waitMs })
    await config.onOpen?.(description)
    return createOpened(connector, lock, async () => {
      await lock.close()
      directoryLock?.close()
    })
  } catch (error) {
    directoryLock?.close()
    throw error
  }
}

function createOpened(
  { createPool }: Connector,
  lock: CoordinatorLock,
  close: () => Promise<void>,
): OpenedPostgres {
  const pool = createPool({
    max: MAX_CONNECTIONS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
  })
  const dialect = postgresDialect(pool)
  return {
    dialect: { ...dialect, createDriver: () => requireLock(dialect.createDriver(), lock, close) },
    createMigrationDialect: () => postgresDialect(createPool({ max: 1 })),
    close,
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

/** Queries wait until a lost lock is regained. */
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
