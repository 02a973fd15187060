// Opens the database and runs its migrations. A SQLite file is opened exclusively.
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type Dialect, Kysely, type PostgresPool } from 'kysely'
import { Migrator } from 'kysely/migration'
import { postgresDialect, sqliteDialect } from './dialects.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { migrations } from './migrations/list.ts'
import type { Tables } from './schema.ts'

export type Db = Kysely<Tables>

/** The pool's `types` must be `postgresTypes(…)`, or instants are returned as strings. */
export type DatabaseConfig =
  | {
      kind: 'sqlite'
      file: string
      /** Released when the disk is full. */
      diskReserve?: DiskReserve
    }
  | { kind: 'postgres'; pool: PostgresPool }

const SQLITE_BUSY = 5
/** How long to wait for a previous coordinator that is still stopping. */
const LOCK_WAIT_MS = 2_000

/**
 * Opens the database and runs pending migrations. Close it with `destroy()`.
 * Throws Errors whose messages are meant for the operator.
 */
export async function openDatabase(config: DatabaseConfig): Promise<Db> {
  const db = new Kysely<Tables>({ dialect: createDialect(config) })
  try {
    await migrate(db)
  } catch (error) {
    await db.destroy()
    throw error
  }
  return db
}

const createDialect = (config: DatabaseConfig): Dialect =>
  config.kind === 'sqlite'
    ? sqliteDialect(openFile(config.file), () => config.diskReserve?.release() ?? false)
    : postgresDialect(config.pool)

function openFile(file: string): DatabaseSync {
  createPrivateFile(file)
  const database = new DatabaseSync(file, { timeout: LOCK_WAIT_MS })
  try {
    // Set the locking mode first: WAL then needs no shared-memory file. FULL: a committed write survives a power cut.
    database.exec('pragma locking_mode = exclusive')
    database.exec('pragma journal_mode = wal')
    database.exec('pragma synchronous = full')
    database.exec('pragma foreign_keys = on')
    database.exec('begin immediate; commit')
  } catch (error) {
    database.close()
    if (isBusy(error)) {
      throw new Error(
        `Another coordinator uses this data directory: ${file} is locked. Stop that coordinator (coordinator.json in this directory contains its pid and URL), or set another directory in BOXWOOD_DATA.`,
        { cause: error },
      )
    }
    throw new Error(
      `The database ${file} cannot be opened: ${getMessage(error)}. Restore the file from a backup, or set another directory in BOXWOOD_DATA.`,
      { cause: error },
    )
  }
  return database
}

/**
 * Creates the file with mode 0600. SQLite gives its other files the same mode. Does not open an existing file: closing
 * it again would release the POSIX locks that this process holds on the file.
 */
function createPrivateFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY

async function migrate(db: Db): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error } = await migrator.migrateToLatest()
  if (error === undefined) return
  throw new Error(
    `The database migration failed: ${getMessage(error)}. If a newer version of Boxwood has used this database, start that version.`,
    { cause: error },
  )
}

const getMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))
