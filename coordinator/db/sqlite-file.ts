// Opens a SQLite file exclusively.
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/**
 * Opens the file, which the caller has exclusively. Throws Errors whose messages are meant for the operator.
 * @param waitMs how long to wait for another process
 */
export function openSqliteFile(file: string, waitMs: number): DatabaseSync {
  createPrivateFile(file)
  const database = new DatabaseSync(file, { timeout: waitMs })
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

/** Opens the file of a data directory whose database is elsewhere, only to lock the data directory. */
export function lockSqliteFile(file: string, waitMs: number): { close(): void } {
  const database = openSqliteFile(file, waitMs)
  if (database.prepare('select 1 from sqlite_schema').get() === undefined) return database
  database.close()
  throw new Error(
    `This data directory has a database of its own: ${file}. Its content is not transferred to Postgres. Unset BOXWOOD_DATABASE_URL to use it, or set another directory in BOXWOOD_DATA.`,
  )
}

/**
 * Creates the file with mode 0600. SQLite gives its other files the same mode. Does not open an existing file: closing
 * it again would release the POSIX locks that this process holds on the file.
 */
export function createPrivateFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY

const getMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))
