// A coordinator that had no CPU time for longer than its lease keeps its queries when the database answers at once.
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
