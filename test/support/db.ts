// Databases for tests: a SQLite file of the test's own, and every store test on Postgres too where there is one.
import { join } from 'node:path'
import pg from 'pg'
import type { Test } from 'tap'
import { postgresTypes } from '../../coordinator/db/dialects.ts'
import { type Db, openDatabase } from '../../coordinator/db/open.ts'
import { startPostgres } from './postgres.ts'
import { tempFolder } from './temp-folder.ts'

/** A path for a database file, whose folder goes when the test ends. */
export function databaseFile(t: Test): string {
  return join(tempFolder(t, 'db'), 'boxwood.db')
}

/** A new, empty SQLite database, closed when the test ends. */
export async function sqliteForTest(t: Test): Promise<Db> {
  const db = await openDatabase({ kind: 'sqlite', file: databaseFile(t) })
  t.teardown(() => db.destroy())
  return db
}

/** Runs the tests once per database, each with a way to get an empty one. */
export async function onEachDatabase(
  t: Test,
  tests: (t: Test, newDb: (t: Test) => Promise<Db>) => Promise<void>,
): Promise<void> {
  await t.test('on SQLite', (t) => tests(t, sqliteForTest))
  const postgres = await startPostgres()
  if ('missing' in postgres) {
    await t.test('on Postgres', { skip: postgres.missing }, async () => undefined)
    return
  }
  t.teardown(() => postgres.stop())
  const newDb = async (t: Test) => {
    const pool = await postgres.newDatabase(postgresTypes(pg.types.getTypeParser))
    const db = await openDatabase({ kind: 'postgres', pool })
    t.teardown(() => db.destroy())
    return db
  }
  await t.test('on Postgres', (t) => tests(t, newDb))
}
