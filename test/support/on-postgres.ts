// Runs test files with Postgres instead of SQLite, where Postgres is installed.
import type { Test } from 'tap'
import { openDatabase } from '../../coordinator/db/open.ts'
import { createPostgresConfig } from './db.ts'
import { startPostgres } from './postgres.ts'

/** @param importFiles imports the test files, whose helpers start coordinators with databaseEnv() */
export async function runOnPostgres(t: Test, importFiles: () => Promise<void>): Promise<void> {
  const postgres = await startPostgres()
  if ('skipReason' in postgres) {
    t.test('on Postgres', { skip: postgres.skipReason }, async () => undefined)
    return
  }
  t.teardown(() => postgres.stop())
  const template = await postgres.newDatabase()
  await (await openDatabase(createPostgresConfig(template))).destroy()
  process.env.BOXWOOD_TEST_POSTGRES = postgres.serverUrl
  process.env.BOXWOOD_TEST_TEMPLATE = template.split('/').at(-1)
  process.env.BOXWOOD_TEST_CREATEDB = postgres.createdb
  await importFiles()
}
