// Runs tests on each kind of database: a temporary SQLite file, and Postgres where it is installed.
import type { Test } from 'tap'
import { type DatabaseConfig, type Db, openDatabase } from '../../coordinator/db/open.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { sqliteForTest } from './sqlite.ts'

export const createPostgresConfig = (url: string): DatabaseConfig & { kind: 'postgres' } => ({
  kind: 'postgres',
  url,
  log: { warn: () => undefined, error: () => undefined },
  onTaken: (error) => {
    throw error
  },
})

async function createTemplate(postgres: Postgres): Promise<string> {
  const url = await postgres.newDatabase()
  await (await openDatabase(createPostgresConfig(url))).destroy()
  return url
}

/** Runs the tests on SQLite, and on Postgres where it is installed. `newDb` creates an empty database. */
export async function onEachDatabase(
  t: Test,
  tests: (t: Test, newDb: (t: Test) => Promise<Db>) => Promise<void>,
): Promise<void> {
  await t.test('on SQLite', (t) => tests(t, sqliteForTest))
  const postgres = await startPostgres()
  if ('skipReason' in postgres) {
    await t.test('on Postgres', { skip: postgres.skipReason }, async () => undefined)
    return
  }
  t.teardown(() => postgres.stop())
  let templateUrl: string | undefined
  const newDb = async (t: Test) => {
    // Copies of one database in which the migrations have run.
    templateUrl ??= await createTemplate(postgres)
    const db = await openDatabase(createPostgresConfig(await postgres.newDatabase(templateUrl)))
    t.teardown(() => db.destroy())
    return db
  }
  await t.test('on Postgres', (t) => tests(t, newDb))
}
