// An SQLite database in memory that the coordinators of a simulation use one after another.
import { DatabaseSync } from 'node:sqlite'
import { type Dialect, type Driver, Kysely } from 'kysely'
import { Migrator } from 'kysely/migration'
import { sqliteDialect } from '../../../coordinator/db/dialects.ts'
import { migrations } from '../../../coordinator/db/migrations/list.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import type { Tables } from '../../../coordinator/db/schema.ts'

export type MemoryDatabase = {
  dialect: Dialect
  /** Has one connection, with a queue. */
  driver: Driver
  /** Without faults. */
  db: Db
  close(): Promise<void>
}

export async function createMemoryDatabase(): Promise<MemoryDatabase> {
  const database = new DatabaseSync(':memory:')
  database.exec('pragma foreign_keys = on')
  const dialect = sqliteDialect(database, () => false)
  const driver = dialect.createDriver()
  const db = new Kysely<Tables>({ dialect: { ...dialect, createDriver: () => driver } })
  const { error } = await new Migrator({
    db,
    provider: { getMigrations: async () => migrations },
  }).migrateToLatest()
  if (error !== undefined) throw error
  return { dialect, driver, db, close: () => db.destroy() }
}
