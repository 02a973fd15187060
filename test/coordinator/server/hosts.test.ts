// The host of a coordinator: its start takes the boxes of earlier versions over, and it refuses what needs the files of a host
// that is down.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adoptBoxes } from '../../../coordinator/boxes/lookups.ts'
import { assertBoxAvailable } from '../../../coordinator/boxes/refuse-unavailable.ts'
import { loadConfig } from '../../../coordinator/server/config.ts'
import { openReplica } from '../../../coordinator/server/replicas/open-replica.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { captureQueries } from '../../support/query-plan.ts'
import { addReplica } from '../../support/replica.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createOwner, createTestBoxService } from '../../support/workspace.ts'

t.test('a start gives its host to boxes without one', async (t) => {
  const first = await startTestCoordinator(t)
  const { id } = (await first.api('POST', '/boxes', {})).json.box
  await first.waitForState(id, 'running')
  const { db } = first.instance.context
  const readHost = (database: typeof db) =>
    database.selectFrom('boxes').select('host').where('id', '=', id).executeTakeFirst()
  const host = readFileSync(join(first.dataDir, 'host'), 'utf8')
  t.same(await readHost(db), { host })
  await db.updateTable('boxes').set({ host: null }).execute()
  await first.close()
  const second = await startTestCoordinator(t, { dataDir: first.dataDir, infra: first.infra })
  t.same(await readHost(second.instance.context.db), { host })
  await second.api('POST', `/boxes/${id}/suspend`)
  await second.waitForState(id, 'suspended')
})

t.test('a request that needs a host without a coordinator is refused at once', async (t) => {
  const { api, edge, infra, waitForState, instance } = await startTestCoordinator(t)
  const { db, replica } = instance.context
  const { id, hostname } = (await api('POST', '/boxes', {})).json.box
  await waitForState(id, 'running')
  const { db: capturing, readQueries } = captureQueries(db)
  await assertBoxAvailable(capturing, { hostname, host: replica.host }, replica.host, 'no_volume')
  await assertBoxAvailable(capturing, { hostname, host: null }, replica.host, 'no_volume')
  t.same(readQueries(), [], 'no query for a box of the own host')

  await db.updateTable('boxes').set({ host: 'hst_other' }).where('id', '=', id).execute()
  const refusal = {
    status: 502,
    json: { error: { code: 'box_unreachable', message: /^The machine that runs box .* is not available\./ } },
  }
  const exec = async () => {
    const { status, json } = await edge(hostname, 'POST', '/exec', { command: 'true' })
    return { status, json }
  }
  t.notMatch(await exec(), refusal, 'its agent is connected here')
  infra.dropTunnel(id)
  t.match(await exec(), refusal)
  await db
    .updateTable('boxes')
    .set({ desired_state: 'suspended', observed_state: 'suspended', suspended_as: 'frozen' })
    .where('id', '=', id)
    .execute()
  t.match(await exec(), refusal)
  t.match(await edge(hostname, 'GET', '/files?path=.'), { json: { error: { code: 'box_not_running' } } })
  await addReplica(db, 'rep_other', 60 * 60_000, 'hst_other')
  // Its coordinator wakes the box: the wake of the request before is in progress.
  t.match((await api('POST', `/boxes/${id}/wake`)).status, 202)
  await waitUntil('the box has a job', async () => (await api('GET', `/boxes/${id}`)).json.job?.op === 'wake')
  t.equal(infra.countCalls('start', id), 1)
})

t.test(
  'one of several coordinators does not start while it is not known where the files of boxes are',
  async (t) => {
    const db = await sqliteForTest(t)
    const owner = await createOwner(db)
    await createTestBoxService(db).create(owner, {})
    await db.updateTable('boxes').set({ host: null }).execute()
    const config = loadConfig({
      BOXWOOD_REPLICA_URL: 'http://127.0.0.1:7070',
      BOXWOOD_DATABASE_URL: 'postgres://127.0.0.1/none',
      BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
      BOXWOOD_AGENT_URL: 'https://boxes.example.com',
    })
    const log = { warn: () => undefined, error: () => undefined }
    const open = () => openReplica({ config, db, host: 'hst_new', log, listenerUrl: 'http://127.0.0.1:7070' })
    await t.rejects(open(), { name: 'StartError', message: /once without BOXWOOD_REPLICA_URL/ })
    await adoptBoxes(db, 'hst_old')
    const { replica } = await open()
    t.equal(replica.host, 'hst_new')
    await replica.close()
  },
)
