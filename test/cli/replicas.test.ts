// The replicas in `box status` and `box doctor`.
import pg from 'pg'
import t from 'tap'
import { checkReplicas } from '../../cli/doctor/replica-checks.ts'
import type { ReplicaStatus } from '../../shared/coordinator-process.ts'
import { VERSION } from '../../shared/version.ts'
import { startAlternatingProxy } from '../support/alternating-proxy.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { startPostgres } from '../support/postgres.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBox } from './run-box.ts'

const postgres = await startPostgres()
const skip = 'skipReason' in postgres ? postgres.skipReason : false
if (!('skipReason' in postgres)) t.teardown(() => postgres.stop())

const REPLICA: ReplicaStatus = {
  id: 'rep_1',
  name: 'a (http://10.0.0.4:7070)',
  version: '1.0.0',
  host: 'hst_1',
  tunnels: 1,
  leaseAgeMs: 2300,
  isAlive: true,
}
const OTHER: ReplicaStatus = { ...REPLICA, id: 'rep_2', name: 'b', host: 'hst_2', tunnels: null }

t.test('box doctor lists several replicas, and warns of one that was killed and of older ones', async (t) => {
  t.same(checkReplicas(null), [])
  t.same(checkReplicas([REPLICA]), [])
  t.match(checkReplicas([REPLICA, OTHER]), [
    {
      status: 'ok',
      message: 'a (http://10.0.0.4:7070): version 1.0.0, host hst_1, 1 agent, lease extended 2.3s ago',
    },
    { status: 'ok', message: /^b: .*, starting or stopping, / },
  ])
  t.match(checkReplicas([REPLICA, { ...OTHER, isAlive: false }]), [
    { status: 'ok' },
    { status: 'warn', advice: /has stopped without ending its lease/ },
  ])
  t.match(checkReplicas([REPLICA, { ...OTHER, host: 'hst_1', isAlive: false }]), [{ status: 'ok' }])
  t.match(checkReplicas([REPLICA, { ...OTHER, version: '1.1.0' }]), [
    { status: 'warn', advice: /different versions/ },
    { status: 'warn' },
  ])
  t.match(checkReplicas({ problem: 'no connection' }), [{ status: 'fail', advice: 'no connection' }])
})

t.test('box status and box doctor read the replicas of the database', { skip }, async (t) => {
  const databaseUrl = 'skipReason' in postgres ? '' : await postgres.newDatabase()
  const proxy = await startAlternatingProxy()
  t.teardown(proxy.close)
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_DATABASE_URL: databaseUrl,
    BOXWOOD_REPLICA_URL: 'http://127.0.0.1:0',
    BOXWOOD_PUBLIC_URL: proxy.url,
    BOXWOOD_AGENT_URL: proxy.url,
    BOXWOOD_LOG: 'fatal',
  })
  proxy.targets.push(Number(new URL(coordinator.url).port))
  await coordinator.waitForFirstBox()
  const env = { BOXWOOD_DATA: coordinator.dataDir }
  const readStatus = async () => JSON.parse((await runBox(null, ['status', '--json'], { env })).stdout)
  const replicas = await waitUntil('the agent of the first box is counted', async () => {
    const { replicas } = await readStatus()
    return replicas[0]?.tunnels === 1 && replicas
  })
  t.match(replicas, [{ version: VERSION, host: /^hst_/, isAlive: true }])
  t.equal(replicas.length, 1)
  t.notMatch((await runBox(null, ['status'], { env })).stdout, 'replica')

  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  t.teardown(() => client.end())
  await client.query(
    `insert into replicas (id, version, host, name, lease_until, started_at, tunnels)
     values ('rep_other', '1.0.0', 'hst_other', 'other (http://127.0.0.1:2)', 4000000000000, 0, 42)`,
  )
  const { code, stdout } = await runBox(null, ['status'], { env })
  t.equal(code, 0)
  t.match(stdout, /^replica +version +host +agents +lease extended$/m)
  t.match(stdout, /^other \(http:\/\/127\.0\.0\.1:2\) +1\.0\.0 +hst_other +42 +0\.0s ago$/m)
  const doctor = await runBox(null, ['doctor'], { env })
  t.match(
    doctor.stdout,
    /replica +other \(http:\/\/127\.0\.0\.1:2\): version 1\.0\.0, host hst_other, 42 agents/,
  )
  await client.query("delete from replicas where id = 'rep_other'")
})
