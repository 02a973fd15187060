// Temporary SQLite databases for tests.
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Db, openDatabase } from '../../coordinator/db/open.ts'
import { createTempDir, getDatabaseDir } from './temp-dir.ts'

/** The path of a database file in a directory that is removed when the test ends. */
export function databaseFile(t: Test): string {
  return join(createTempDir(t, 'db', getDatabaseDir()), 'boxwood.db')
}

/** A new, empty SQLite database, closed when the test ends. */
export async function sqliteForTest(t: Test): Promise<Db> {
  const db = await openDatabase({ kind: 'sqlite', file: databaseFile(t) })
  t.teardown(() => db.destroy())
  return db
}
