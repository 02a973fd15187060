// Opens the database that the configuration selects: Postgres, or the file in the data directory.
import { readFile, writeFile } from 'node:fs/promises'
import type { DataDirectory } from '../base/data-directory.ts'
import type { DiskReserve } from './disk-reserve.ts'
import type { StoreObserver } from './observed-driver.ts'
import { type Db, openDatabase } from './open.ts'
import type { PostgresConfig } from './postgres/open.ts'
import type { DatabaseSettings } from './settings.ts'

export type ConfiguredDatabaseOptions = Pick<PostgresConfig, 'log' | 'onTaken'> & {
  diskReserve?: DiskReserve
  observer?: StoreObserver | undefined
  /** See DatabaseConfig. */
  migrateTo?: null
}

/** @param path see DataDirectory.postgresFile */
export const writePostgresFile = (path: string, description: string): Promise<void> =>
  writeFile(path, `${description}\n`, { mode: 0o600, flush: true })

/**
 * Opens the database and locks the data directory for this process. A data directory is used with one kind of database only:
 * with another database, the coordinator would not know the boxes in the directory.
 * Throws Errors whose messages are meant for the operator.
 */
export async function openConfiguredDatabase(
  { databaseUrl }: DatabaseSettings,
  { databaseFile, postgresFile }: DataDirectory,
  { diskReserve, observer, log, onTaken, ...options }: ConfiguredDatabaseOptions,
): Promise<Db> {
  if (databaseUrl === null) {
    const description = await readFile(postgresFile, 'utf8').catch(() => null)
    if (description !== null)
      throw new Error(
        `The boxes of this data directory are in the Postgres database ${description.trim()}. Set BOXWOOD_DATABASE_URL, or another directory in BOXWOOD_DATA.`,
      )
    return openDatabase({
      kind: 'sqlite',
      file: databaseFile,
      observer,
      ...options,
      ...(diskReserve === undefined ? {} : { diskReserve }),
    })
  }
  return openDatabase({
    kind: 'postgres',
    url: databaseUrl,
    lockFile: databaseFile,
    observer,
    log,
    onTaken,
    onOpen: (description) => writePostgresFile(postgresFile, description),
    ...options,
  })
}
