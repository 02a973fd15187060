// A coordinator whose connections to Postgres are lost continues, unless another coordinator has got the database.
import pg from 'pg'
import t, { type Test } from 'tap'
import { isAlive, readIdentity } from '../../coordinator/providers/parts/proc.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { listBoxPids } from '../support/find-agent-process.ts'
import { startPostgres } from '../support/postgres.ts'
import { waitUntil } from '../support/wait-until.ts'

const METRICS_TOKEN = 'a-token-of-the-metrics'
const postgres = await startPostgres()
const skip = 'skipReason' in postgres ? postgres.skipReason : false
if (!('skipReason' in postgres)) t.teardown(() => postgres.stop())

async function connect(t: Test, connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

t.test('a coordinator loses its connections to Postgres', { skip }, async (t) => {
  const url = 'skipReason' in postgres ? '' : await postgres.newDatabase()
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_DATABASE_URL: url,
    BOXWOOD_LOG: 'fatal',
    BOXWOOD_METRICS_TOKEN: METRICS_TOKEN,
  })
  const box = await coordinator.waitForFirstBox()
  const admin = await connect(t, url)
  const terminateOthers = () =>
    admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'other'`,
    )

  await t.test('it continues', async (t) => {
    await terminateOthers()
    await waitUntil('commands run', async () => (await coordinator.exec(box.hostname, 'true')).exitCode === 0)
    await waitUntil('it is ready', async () => (await fetch(`${coordinator.url}/readyz`)).ok)
    const { status } = await coordinator.sendJson('POST', `/api/v1/boxes/${box.id}/suspend`)
    t.equal(status, 202)
    await coordinator.waitForState(box.id, 'suspended')
    await coordinator.sendJson('POST', `/api/v1/boxes/${box.id}/wake`)
    await coordinator.waitForState(box.id, 'running')
  })

  await t.test('the metrics measure the queries', async (t) => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
    const metrics = await (await fetch(`${coordinator.url}/metrics`, { headers })).text()
    t.match(metrics, /^boxwood_store_query_duration_seconds_count\{operation="select"\} [1-9]/m)
    t.match(metrics, /^boxwood_store_commit_duration_seconds_count [1-9]/m)
  })

  await t.test(
    'it exits when another coordinator has got the database, and its boxes keep running',
    async (t) => {
      const identity = readIdentity(coordinator.pid)
      const { rows } = await admin.query(
        "select classid::bigint << 32 | objid::bigint as key from pg_locks where locktype = 'advisory'",
      )
      const other = await connect(t, url)
      await other.query("set application_name = 'other'")
      const locked = other.query('select pg_advisory_lock($1)', [rows[0].key])
      await waitUntil('the other one waits', async () => {
        const waiting = await admin.query(
          "select 1 from pg_locks where locktype = 'advisory' and not granted",
        )
        return waiting.rows.length > 0
      })
      await terminateOthers()
      await locked
      await waitUntil('the coordinator has exited', () => identity !== null && !isAlive(identity))
      t.not(listBoxPids(box.id).length, 0)
      await other.query('select pg_advisory_unlock_all()')
    },
  )
})
