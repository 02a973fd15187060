// The lease of a busy coordinator: without CPU time for longer than its lease, it keeps its queries when the database answers at
// once; many queries do not delay its renewals.
import { sql } from 'kysely'
import t from 'tap'
import { registerSharedReplica } from '../../../coordinator/replicas/replica.ts'
import { TEST_HOST } from '../../support/replica.ts'
import { openShared, startSharedPostgres } from '../../support/shared-databases.ts'
import { waitUntil } from '../../support/wait-until.ts'

const LOST_AFTER_MS = 400

const { skip, newDatabase } = await startSharedPostgres(t)

t.test('queries of a process without CPU time', { skip }, async (t) => {
  const db = await openShared(t, await newDatabase())
  const replica = await registerSharedReplica({
    ...{ db, host: TEST_HOST, url: 'http://127.0.0.1:1', name: 'test', settings: {} },
    log: { warn() {}, error() {} },
    ...{ lostAfterMs: LOST_AFTER_MS, renewEveryMs: 50 },
  })
  t.teardown(() => replica.close())
  const seen: string[] = []
  replica.events.on('lost', () => seen.push('lost'))
  const query = sql`select pg_sleep(${(2 * LOST_AFTER_MS) / 1000})`.execute(db)
  await waitUntil('the query runs', async () => {
    const { rows } = await sql`select 1 from pg_stat_activity where query like 'select pg_sleep%'`.execute(db)
    return rows.length > 0
  })
  const end = performance.now() + LOST_AFTER_MS + 50
  while (performance.now() < end);
  await waitUntil('the lease was lost', () => seen.length > 0)
  await t.resolves(query)
  t.same(seen, ['lost'])
})

t.test('queries that wait for a connection do not delay the lease', { skip }, async (t) => {
  const url = await newDatabase()
  const db = await openShared(t, url)
  const other = await openShared(t, url)
  const replica = await registerSharedReplica({
    ...{ db, host: TEST_HOST, url: 'http://127.0.0.1:1', name: 'test', settings: {} },
    log: { warn() {}, error() {} },
    ...{ renewEveryMs: 10 },
  })
  t.teardown(() => replica.close())
  const readLease = async () =>
    (await other.selectFrom('replicas').select('lease_until').where('id', '=', replica.id).executeTakeFirst())
      ?.lease_until ?? 0
  // They wait for this lock, more of them than there are connections.
  await other.connection().execute(async (locked) => {
    await sql`select pg_advisory_lock(7)`.execute(locked)
    const waiting = Array.from({ length: 30 }, () => sql`select pg_advisory_xact_lock_shared(7)`.execute(db))
    await waitUntil('all connections are busy', async () => {
      const { rows } =
        await sql`select 1 from pg_locks where locktype = 'advisory' and objid = 7 and not granted`.execute(
          locked,
        )
      return rows.length >= 10
    })
    const before = await readLease()
    await waitUntil('the lease is extended', async () => (await readLease()) > before)
    t.ok(replica.isLeaseValid)
    await sql`select pg_advisory_unlock(7)`.execute(locked)
    await Promise.all(waiting)
  })
})
