// Regions on one machine: boxes of an earlier version, and a region that is no longer configured.
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

const REGION = 'eu-central-1'
const MARKER_COMMAND = 'cat "$HOME/marker"'

const start = (t: Test, dataDir: string, regions?: string) =>
  startTestCoordinator(t, {
    machines: 'local',
    dataDir,
    env: regions === undefined ? {} : { BOXWOOD_REGIONS: regions },
  })

t.test('a box stays in its region over upgrades and configurations', async (t) => {
  const dataDir = createTempDir(t, 'regions')
  const created = await start(t, dataDir)
  const { box } = (await created.api('POST', '/boxes', { name: 'plum', region: REGION })).json
  t.equal(box.region, REGION)
  await created.waitForState(box.id, 'running')
  await created.edge('plum', 'POST', '/exec', { command: 'echo kept >"$HOME/marker"' })
  await created.close()
  const regionDir = join(dataDir, 'regions', REGION, 'boxes', box.id)
  const legacyDir = join(dataDir, 'boxes', box.id)
  t.ok(existsSync(regionDir))

  // As an earlier version has left it.
  mkdirSync(dirname(legacyDir), { recursive: true })
  renameSync(regionDir, legacyDir)
  const upgraded = await start(t, dataDir)
  await upgraded.waitForState(box.id, 'running')
  t.match((await upgraded.edge('plum', 'POST', '/exec', { command: MARKER_COMMAND })).json, {
    stdout: 'kept\n',
  })
  t.same([existsSync(regionDir), existsSync(legacyDir)], [true, false])
  await upgraded.close()

  const reduced = await start(t, dataDir, 'us-east-1=local,us-east-2=local')
  await reduced.waitForState(box.id, 'running')
  t.match((await reduced.edge('plum', 'POST', '/exec', { command: MARKER_COMMAND })).json, {
    stdout: 'kept\n',
  })
  const refused = await reduced.api('POST', '/boxes', { region: REGION })
  t.equal(refused.status, 400)
  t.match(refused.json, { error: 'invalid_region', message: /us-east-1, us-east-2.*eu-central-1/ })
  const { json } = await reduced.api('POST', '/boxes', {})
  t.equal(json.box.region, 'us-east-1', 'a box without a region')
  await reduced.api('DELETE', `/boxes/${box.id}`)
  await reduced.waitForState(box.id, 'terminated')
  t.notOk(existsSync(regionDir))
})

t.test('a move to another region keeps the files, and does not disturb the moved box', async (t) => {
  const dataDir = createTempDir(t, 'regions')
  const { api, edge, waitForState } = await start(t, dataDir)
  const { box } = (await api('POST', '/boxes', { name: 'plum' })).json
  await waitForState(box.id, 'running')
  await edge('plum', 'POST', '/exec', { command: 'echo kept >"$HOME/marker"' })
  t.equal((await api('POST', `/boxes/${box.id}/region`, { region: REGION })).status, 202)
  await waitUntil(
    'the box has moved',
    async () => (await api('GET', `/boxes/${box.id}`)).json.box.region === REGION,
  )
  await waitForState(box.id, 'running')
  const { processId } = (await edge('plum', 'POST', '/exec', { command: 'sleep 600', detached: true })).json
  t.match((await edge('plum', 'POST', '/exec', { command: MARKER_COMMAND })).json, { stdout: 'kept\n' })
  await waitUntil(
    'the files in the old region are removed',
    () => !existsSync(join(dataDir, 'boxes', box.id)),
  )
  t.match((await edge('plum', 'GET', `/exec/${processId}`)).json, { running: true })
  const { events } = (await api('GET', `/boxes/${box.id}`)).json
  t.equal(events[0].toState, 'running')
  t.equal(events[0].fromState, 'migrating', 'the box was not recovered')
  t.match(events[0].reason, /on the same disk: no files were copied$/)
})
