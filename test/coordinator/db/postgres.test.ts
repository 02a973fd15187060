// A Postgres database: one coordinator at a time, messages for the operator, and lost connections.
import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openDataDirectory } from '../../../coordinator/base/data-directory.ts'
import { withTimeout } from '../../../coordinator/base/timeout.ts'
import { type Db, openDatabase } from '../../../coordinator/db/open.ts'
import { openConfiguredDatabase } from '../../../coordinator/db/open-configured.ts'
import { forUpdate, type Trx, transaction } from '../../../coordinator/db/transaction.ts'
import { loadConfig } from '../../../coordinator/server/config.ts'
import { createPostgresConfig } from '../../support/db.ts'
import { startPostgres } from '../../support/postgres.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'

const silentLog = { warn: () => undefined, error: () => undefined }
const postgres = await startPostgres()
const skip = 'skipReason' in postgres ? postgres.skipReason : false
const newDatabase = () => ('skipReason' in postgres ? '' : postgres.newDatabase())
if (!('skipReason' in postgres)) t.teardown(() => postgres.stop())

/** Runs statements as an administrator, in the database of the URL. */
async function administrate(t: Test, url: string) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** Terminates the connections to the database of which the name starts with the prefix; '' for pooled connections. */
const terminate = (admin: pg.Client, prefix: string) =>
  admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and
       case when $1 = '' then application_name = '' else application_name like $1 || '%' end`,
    [prefix],
  )

const countWorkspaces = async (db: Db) => (await db.selectFrom('workspaces').select('id').execute()).length

t.test('rejects a second coordinator until the first has closed the database', { skip }, async (t) => {
  const config = createPostgresConfig(await newDatabase())
  const first = await openDatabase(config)
  const rejected = openDatabase(config)
  await t.rejects(rejected, {
    message: /^Another coordinator uses the database test\d+ at .* \(boxwood \w+ pid \d+ on .*\)\. Stop that/,
  })
  const waiting = openDatabase(config)
  await first.destroy()
  const second = await waiting
  t.equal(await countWorkspaces(second), 0)
  await second.destroy()
})

t.test('a coordinator that has lost its connections continues', { skip }, async (t) => {
  const url = await newDatabase()
  const db = await openDatabase(createPostgresConfig(url))
  t.teardown(() => db.destroy())
  t.equal(await countWorkspaces(db), 0)
  const admin = await administrate(t, url)
  await terminate(admin, '')
  // A query may still use the connection that is being terminated.
  const canQuery = () =>
    countWorkspaces(db).then(
      () => true,
      () => false,
    )
  await waitUntil('the lost idle connection is replaced', canQuery)

  const sleeping = db.executeQuery({
    ...db.selectFrom('workspaces').selectAll().compile(),
    sql: 'select pg_sleep(600)',
  })
  sleeping.catch(() => undefined)
  await waitUntil('the query runs', async () => {
    const { rows } = await admin.query(
      "select 1 from pg_stat_activity where query like 'select pg_sleep%' and datname = current_database()",
    )
    return rows.length > 0
  })
  await terminate(admin, '')
  await t.rejects(sleeping, 'a query in flight fails')
  await waitUntil('the lost connections are replaced', canQuery)

  const findLockHolder = async () => {
    const { rows } = await admin.query(
      "select pid from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())",
    )
    return rows[0]?.pid as number | undefined
  }
  const terminated = await findLockHolder()
  await terminate(admin, 'boxwood')
  t.equal(await countWorkspaces(db), 0, 'queries wait until the lock is regained')
  await waitUntil('a new connection has the lock', async () => {
    const holder = await findLockHolder()
    return holder !== undefined && holder !== terminated
  })
  await t.rejects(openDatabase(createPostgresConfig(url)), { message: /^Another coordinator/ })
})

t.test('rows of a locked workspace can be inserted', { skip }, async (t) => {
  const db = await openDatabase(createPostgresConfig(await newDatabase()))
  t.teardown(() => db.destroy())
  const created_at = 1
  await db
    .insertInto('workspaces')
    .values({ id: 'ws', name: 'a', zero_data_retention: 0, created_at })
    .execute()
  await transaction(db, async (trx) => {
    await forUpdate(trx, trx.selectFrom('workspaces').selectAll()).execute()
    // Another connection.
    const operation = { id: 'dop_1', workspace_id: 'ws', kind: 'box_delete', target_id: 'box' } as const
    const result = { status: 'pending', requested_at: 1, completed_at: null, error: null } as const
    const inserting = db
      .insertInto('operations')
      .values({ ...operation, ...result })
      .execute()
    await t.resolves(withTimeout(inserting, 5_000, 'the insert waits for the lock'))
  })
})

t.test('a transaction that has waited for a lock reads what was committed meanwhile', { skip }, async (t) => {
  const url = await newDatabase()
  const admin = await administrate(t, url)
  const name = new URL(url).pathname.slice(1)
  await admin.query(`alter database ${name} set default_transaction_isolation = 'repeatable read'`)
  const db = await openDatabase(createPostgresConfig(url))
  t.teardown(() => db.destroy())
  const created_at = 1
  const insert = (trx: Db, id: string) =>
    trx.insertInto('workspaces').values({ id, name: 'a', zero_data_retention: 0, created_at }).execute()
  await insert(db, 'ws_1')
  const lock = (trx: Trx) =>
    forUpdate(trx, trx.selectFrom('workspaces').selectAll().where('id', '=', 'ws_1')).execute()

  const [isLocked, hasRead] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = transaction(db, async (trx) => {
    await lock(trx)
    isLocked.resolve()
    await hasRead.promise
    await insert(trx, 'ws_2')
  })
  const second = transaction(db, async (trx) => {
    await isLocked.promise
    t.equal(await countWorkspaces(trx), 1)
    hasRead.resolve()
    await lock(trx)
    return countWorkspaces(trx)
  })
  await first
  t.equal(await second, 2)
})

t.test('a coordinator that loses its lock to another one stops', { skip }, async (t) => {
  const url = await newDatabase()
  const taken = Promise.withResolvers<Error>()
  const db = await openDatabase({ ...createPostgresConfig(url), onTaken: taken.resolve })
  t.teardown(() => db.destroy())
  const admin = await administrate(t, url)
  const { rows } = await admin.query(
    "select classid::bigint << 32 | objid::bigint as key from pg_locks where locktype = 'advisory'",
  )
  // Waits behind the coordinator, as another one does at its start.
  await admin.query("set application_name = 'the other one'")
  const other = admin.query('select pg_advisory_lock($1)', [rows[0].key])
  const terminator = await administrate(t, url)
  await waitUntil('the other one waits', async () => {
    const waiting = await terminator.query(
      "select 1 from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())",
    )
    return waiting.rows.length > 0
  })
  await terminate(terminator, 'boxwood')
  await other
  t.match((await taken.promise).message, /^Another coordinator uses the database .* \(the other one\)/)
  await t.rejects(countWorkspaces(db), { message: /^Another coordinator/ }, 'no query runs without the lock')
})

t.test('a start that fails says what to do, without the password', { skip }, async (t) => {
  const url = await newDatabase()
  const admin = await administrate(t, url)
  const name = new URL(url).pathname.slice(1)
  await admin.query(`create role guest_${name} login`)
  await admin.query("create role secured login password 'another'")
  const { rows } = await admin.query('show hba_file')
  const rules = readFileSync(rows[0].hba_file, 'utf8')
  writeFileSync(rows[0].hba_file, `local all secured scram-sha-256\n${rules}`)
  await admin.query('select pg_reload_conf()')
  const withChanges = (change: (url: URL) => void) => {
    const changed = new URL(url)
    changed.password = 'pg-secret'
    change(changed)
    return changed.href
  }
  for (const [changed, message] of [
    [
      withChanges((u) => (u.pathname = '/missing')),
      /^The database missing does not exist at .*`createdb --owner=boxwood missing`/,
    ],
    [
      withChanges((u) => (u.username = 'unknown')),
      /^Postgres at .* rejected the user unknown: .*BOXWOOD_DATABASE_URL/,
    ],
    [
      withChanges((u) => (u.hostname = '%2Fmissing')),
      /^Postgres at \/missing cannot be reached: .*BOXWOOD_DATABASE_URL/,
    ],
    [
      withChanges((u) => (u.username = 'secured')),
      /^Postgres at .* rejected the user secured: password authentication failed .*BOXWOOD_DATABASE_URL/,
    ],
    [
      `postgres://boxwood:pg-secret@127.0.0.1:9/${name}`,
      /^Postgres at 127\.0\.0\.1:9 cannot be reached: .*ECONNREFUSED/,
    ],
    [withChanges((u) => (u.username = `guest_${name}`)), /may not create tables .*owner of the database/],
  ] as const) {
    const opening = openDatabase(createPostgresConfig(changed))
    const error: Error = await opening.then(
      () => t.fail('the database was opened') as never,
      (error: Error) => error,
    )
    t.match(error.message, message)
    t.notMatch(error.message, 'pg-secret')
  }
})

t.test('a data directory is used with one kind of database', { skip }, async (t) => {
  const options = { log: silentLog, onTaken: () => undefined }
  const open = async (dir: string, databaseUrl: string | undefined) =>
    openConfiguredDatabase(
      loadConfig({ BOXWOOD_DATA: dir, BOXWOOD_DATABASE_URL: databaseUrl }),
      await openDataDirectory(dir),
      options,
    )
  const url = await newDatabase()
  const [first, second] = [createTempDir(t, 'postgres'), createTempDir(t, 'sqlite')]
  const db = await open(first, url)
  await t.rejects(open(first, await newDatabase()), {
    message: /^Another coordinator uses this data directory/,
  })
  await db.destroy()
  await t.rejects(open(first, undefined), {
    message:
      /^The boxes of this data directory are in the Postgres database test\d+ at .*Set BOXWOOD_DATABASE_URL/,
  })
  await (await open(first, url)).destroy()

  await (await open(second, undefined)).destroy()
  await t.rejects(open(second, url), { message: /^This data directory has a database of its own/ })
})
