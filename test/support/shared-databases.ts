// Opens one Postgres database several times, as coordinators that share it do.
import pg from 'pg'
import type { Test } from 'tap'
import { type DatabaseConfig, type Db, openDatabase } from '../../coordinator/db/open.ts'
import { createPostgresConfig } from './db.ts'
import { startPostgres } from './postgres.ts'

export type SharedPostgres = {
  /** For the tests that need Postgres. */
  skip: string | false
  /** Where the server accepts connections. */
  serverUrl: string
  /** Creates a database in which the migrations have run. Returns its URL. */
  newDatabase(): Promise<string>
}

/** Starts a server where Postgres is installed, and stops it after the test. */
export async function startSharedPostgres(t: Test): Promise<SharedPostgres> {
  const postgres = await startPostgres()
  if ('skipReason' in postgres)
    return { skip: postgres.skipReason, serverUrl: '', newDatabase: async () => '' }
  t.teardown(() => postgres.stop())
  let template: Promise<string> | undefined
  async function createTemplate(url: string): Promise<string> {
    await (await openDatabase(createPostgresConfig(url))).destroy()
    return url
  }
  return {
    skip: false,
    serverUrl: postgres.serverUrl,
    async newDatabase() {
      template ??= postgres.newDatabase().then(createTemplate)
      return postgres.newDatabase(await template)
    },
  }
}

export const createSharedConfig = (url: string): DatabaseConfig & { kind: 'postgres' } => ({
  ...createPostgresConfig(url),
  shared: {},
})

/** Closes the database after the test. */
export async function openShared(
  t: Test,
  url: string,
  changes: Partial<DatabaseConfig & { kind: 'postgres' }> = {},
): Promise<Db> {
  const db = await openDatabase({ ...createSharedConfig(url), ...changes })
  t.teardown(() => db.destroy())
  return db
}

/** Opens the database twice. */
export const openPair = async (t: Test, url: string): Promise<[first: Db, second: Db]> => [
  await openShared(t, url),
  await openShared(t, url),
]

/** Connects to the database without the coordinator. */
export async function connectClient(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** Records the texts of all NOTIFY of the database. */
export async function recordNotifications(t: Test, url: string): Promise<string[]> {
  const client = await connectClient(t, url)
  const texts: string[] = []
  client.on('notification', ({ payload = '' }) => texts.push(payload))
  await client.query('listen boxwood')
  return texts
}

/** Terminates the connections with which the coordinators of a database receive notifications. Returns their number. */
export async function terminateListeners(client: pg.Client): Promise<number> {
  const { rowCount } = await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name like 'boxwood%' and datname = current_database()`,
  )
  return rowCount ?? 0
}
