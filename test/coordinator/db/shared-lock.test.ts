// The lock of a Postgres database, of coordinators that share it and of one that uses it alone.

import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { closeConnections } from '../../../coordinator/db/notifications.ts'
import { openDatabase } from '../../../coordinator/db/open.ts'
import { createPostgresConfig } from '../../support/db.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import {
  connectClient,
  createSharedConfig,
  openShared,
  startSharedPostgres,
  terminateListeners,
} from '../../support/shared-databases.ts'
import { waitUntil } from '../../support/wait-until.ts'

const { skip, newDatabase } = await startSharedPostgres(t)

t.test('coordinators that share a database exclude one that uses it alone', { skip }, async (t) => {
  const url = await newDatabase()
  const alone = await openDatabase(createPostgresConfig(url))
  await t.rejects(openDatabase(createSharedConfig(url)), {
    message:
      /^Another coordinator uses the database test\d+ at .* alone \(boxwood \w+ pid \d+ on .*\)\. Stop that coordinator/,
  })
  await alone.destroy()
  const first = await openDatabase(createSharedConfig(url))
  const second = await openDatabase(createSharedConfig(url))
  await first.destroy()
  await t.rejects(openDatabase(createPostgresConfig(url)), {
    message:
      /^Other coordinators share the database test\d+ at .* \(boxwood \w+ pid \d+ on .*\)\. Stop all of them/,
  })
  await second.destroy()
  await (await openDatabase(createPostgresConfig(url))).destroy()
})

t.test('a coordinator stops when another one uses the database alone meanwhile', { skip }, async (t) => {
  const url = await newDatabase()
  const taken = Promise.withResolvers<Error>()
  const db = await openShared(t, url, { onTaken: taken.resolve })
  const [admin, other] = [await connectClient(t, url), await connectClient(t, url)]
  const { rows } = await admin.query(
    `select classid::bigint << 32 | objid::bigint as key from pg_locks
     where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
  )
  await other.query("set application_name = 'the other one'")
  // Waits behind the coordinator, as another one does at its start.
  const locked = other.query('select pg_advisory_lock($1)', [rows[0].key])
  await waitUntil('the other one waits', async () => {
    const waiting = await admin.query(
      "select 1 from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())",
    )
    return waiting.rows.length > 0
  })
  await terminateListeners(admin)
  await locked
  t.match((await taken.promise).message, /^Another coordinator uses the database .* alone \(the other one\)/)
  await t.rejects(db.selectFrom('workspaces').select('id').execute(), { message: /^Another coordinator/ })
})

t.test('closed connections end their queries, also through a broken network', { skip }, async (t) => {
  const proxy = await startPostgresProxy(t, await newDatabase())
  const db = await openShared(t, proxy.url)
  const query = () => sql`select 1`.execute(db)
  await Promise.all([query(), query(), query()])
  proxy.cut()
  const queries = Promise.allSettled([query(), query()])
  proxy.repair()
  await setImmediate()
  closeConnections(db)
  t.match(await queries, [{ status: 'rejected' }, { status: 'rejected' }])
  await waitUntil('later queries use new connections', () => query().catch(() => undefined))
})
