// Opens the database, and runs its migrations.
import { type Dialect, Kysely } from 'kysely'
import { Migrator } from 'kysely/migration'
import { sqliteDialect } from './dialects.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { describeNewerVersion, recordVersion } from './executed-migrations.ts'
import { enableImmediateQueries } from './immediate-queries.ts'
import { migrations } from './migrations/list.ts'
import { connectCoordinators } from './notification-hub.ts'
import { logQueries, observeDriver, type StoreObserver } from './observed-driver.ts'
import { openPostgres, type PostgresConfig } from './postgres/open.ts'
import type { Tables } from './schema.ts'
import { NodeSqliteDriver } from './sqlite-driver.ts'
import { openSqliteFile } from './sqlite-file.ts'

export type Db = Kysely<Tables>

export type DatabaseConfig = {
  /** Measures the queries. */
  observer?: StoreObserver | undefined
  /** The last migration to run; null: none. Default: all pending migrations run. */
  migrateTo?: string | null
} & (
  | {
      kind: 'sqlite'
      file: string
      /** Released when the disk is full. */
      diskReserve?: DiskReserve
    }
  | ({ kind: 'postgres' } & PostgresConfig)
)

/** How long to wait for a previous coordinator that is still stopping. */
const LOCK_WAIT_MS = 2_000

/**
 * Opens the database and runs pending migrations. Close it with `destroy()`.
 * Throws Errors whose messages are meant for the operator.
 */
export async function openDatabase(config: DatabaseConfig): Promise<Db> {
  return config.kind === 'sqlite' ? openSqlite(config) : openPostgresDatabase(config)
}

async function openSqlite(config: DatabaseConfig & { kind: 'sqlite' }): Promise<Db> {
  const file = openSqliteFile(config.file, LOCK_WAIT_MS)
  const freeDiskSpace = () => config.diskReserve?.release() ?? false
  const db = createDb(sqliteDialect(file, freeDiskSpace), config.observer)
  try {
    await migrate(db, config.migrateTo)
  } catch (error) {
    await db.destroy()
    throw error
  }
  return db
}

async function openPostgresDatabase(config: DatabaseConfig & { kind: 'postgres' }): Promise<Db> {
  const opened = await openPostgres(config, LOCK_WAIT_MS)
  const { dialect, createMigrationDialect, sharedConnection, close } = opened
  const migrated = createDb(createMigrationDialect())
  try {
    await migrate(migrated, config.migrateTo)
  } catch (error) {
    await close()
    throw error
  } finally {
    await migrated.destroy()
  }
  const db = createDb(dialect, config.observer)
  // `destroy()` would not close a database that has never been used.
  await db.connection().execute(async () => undefined)
  if (sharedConnection !== null) sharedConnection.setReceiver(connectCoordinators(db, sharedConnection))
  return db
}

function createDb(dialect: Dialect, observer?: StoreObserver): Db {
  const driver = dialect.createDriver()
  const db = new Kysely<Tables>(
    observer === undefined
      ? { dialect: { ...dialect, createDriver: () => driver } }
      : {
          dialect: { ...dialect, createDriver: () => observeDriver(driver, observer) },
          log: logQueries(observer),
        },
  )
  if (driver instanceof NodeSqliteDriver) enableImmediateQueries(db, driver, observer)
  return db
}

/** @param target the last migration to run; null: none. Default: the newest one. */
export async function migrate(db: Db, target?: string | null): Promise<void> {
  if (target === null) return
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error } = await (target === undefined ? migrator.migrateToLatest() : migrator.migrateTo(target))
  if (error !== undefined) {
    const newer = await describeNewerVersion(db).catch(() => null)
    throw new Error(newer ?? `The database migration failed: ${getMessage(error)}.`, { cause: error })
  }
  if (target === undefined) await recordVersion(db, Date.now())
}

const getMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))
