// Backups with the files of local boxes: running, suspended and in deep sleep, and snapshots. Also what an interrupted backup
// leaves, and backups without a running coordinator.

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { writeBackup } from '../../../../coordinator/server/backup/write-backup.ts'
import { newId } from '../../../../shared/ids.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from '../../../e2e/coordinator-with-box.ts'
import { takeSnapshot } from '../../../e2e/snapshots-support.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { limitsEnv } from '../../../support/limits-env.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { configOf, listNames, NEVER, restore } from './support.ts'

/** Creates a tree with many files on the box, and returns a digest of it. */
const CREATE_TREE =
  'mkdir -p tree/sub && for n in $(seq 200); do echo "$n" >tree/sub/$n; done; ln -s sub tree/link; head -c 3000000 /dev/urandom >tree/blob; chmod 640 tree/blob'
const DIGEST =
  'cd tree && { find . -printf "%p %m %l\\n" | sort; find . -type f | sort | xargs sha256sum; } | sha256sum'

const listArchives = (dataDir: string): string[] =>
  listNames(join(dataDir, 'archives')).flatMap((workspace) =>
    listNames(join(dataDir, 'archives', workspace, 'archives')),
  )

async function backUpTo(t: Test, dataDir: string, includeBoxes = true): Promise<string> {
  const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
  await writeBackup(configOf(dataDir), file, { includeBoxes, signal: NEVER })
  return file
}

t.test('local boxes and snapshots', async (t) => {
  const source = await startCoordinatorWithBox(t)
  const { box: running, api, edge, waitForState } = source
  await source.exec(CREATE_TREE)
  const digest = (await source.exec(DIGEST)).stdout
  const snapshotId = await takeSnapshot(source, running.id)
  const suspended = (await api('POST', '/boxes', {})).json.box
  await waitForState(suspended.id, 'running')
  await edge(suspended.hostname, 'POST', '/exec', { command: 'echo suspended >state' })
  await api('POST', `/boxes/${suspended.id}/suspend`)
  await waitForState(suspended.id, 'suspended')
  const ticks = await source.exec('while sleep 0.05; do date +%s%N >>ticks; done', { detached: true })

  const file = await backUpTo(t, source.dataDir)
  t.same(listArchives(source.dataDir), [snapshotId], 'the archives of the backup are removed')
  t.match((await edge(running.hostname, 'GET', `/exec/${ticks.processId}`)).json, {
    exitCode: null,
    signal: null,
    lost: false,
  })
  t.match(
    (await api('GET', `/boxes/${running.id}`)).json.box,
    { observedState: 'running' },
    'the box is as before',
  )
  t.match((await api('GET', `/boxes/${suspended.id}`)).json.box, { observedState: 'suspended' })
  await source.close()

  const dataDir = await restore(t, file)
  const restored = await startTestCoordinator(t, {
    machines: 'local',
    dataDir,
    env: limitsEnv(HIGH_EDGE_LIMITS),
  })
  await restored.waitForState(running.id, 'running')
  const run = async (name: string, command: string) =>
    (await restored.edge(name, 'POST', '/exec', { command })).json.stdout
  t.equal(await run(running.hostname, DIGEST), digest, 'the running box has its files')
  t.match((await restored.api('GET', `/boxes/${suspended.id}`)).json.box, { observedState: 'deep_sleep' })
  t.equal(await run(suspended.hostname, 'cat state'), 'suspended\n', 'a request wakes the suspended box')
  const fromSnapshot = await restored.api('POST', '/boxes', { fromSnapshotId: snapshotId })
  t.equal(fromSnapshot.status, 202, fromSnapshot.text)
  await restored.waitForState(fromSnapshot.json.box.id, 'running')
  t.equal(await run(fromSnapshot.json.box.hostname, DIGEST), digest, 'the snapshot has its files')

  await t.test('a backup without a coordinator, whose boxes are stopped', async (t) => {
    await restored.close()
    const again = await restore(t, await backUpTo(t, dataDir))
    // Of the snapshot, and of the three boxes.
    t.equal(listArchives(again).length, 4)
    const withoutBoxes = await restore(t, await backUpTo(t, dataDir, false))
    t.same(listArchives(withoutBoxes), [snapshotId])
  })
})

t.test('the next start removes what a backup of a killed coordinator has left', async (t) => {
  const first = await startTestCoordinator(t, { machines: 'local' })
  const { dataDir } = first
  const { json } = await first.api('GET', '/boxes')
  await first.waitForState(json.boxes[0].id, 'running')
  const { context } = first.instance
  const [workspace] = await context.db.selectFrom('workspaces').select('id').execute()
  const key = { workspaceId: workspace?.id ?? '', archiveId: newId('archive') }
  await context.providers.inRegion('us-west-2').capture(json.boxes[0].id, key, 'all')
  t.same(listArchives(dataDir), [key.archiveId])
  await first.close()
  const workDir = join(dataDir, 'backup-tmp', createHash('sha256').update('x').digest('hex').slice(0, 12))
  mkdirSync(workDir, { recursive: true })
  writeFileSync(join(workDir, 'captures'), `${JSON.stringify({ region: 'us-west-2', ...key })}\n`)
  writeFileSync(join(workDir, 'boxwood.db'), 'incomplete')

  const second = await startTestCoordinator(t, { machines: 'local', dataDir })
  t.same(readdirSync(join(dataDir, 'backup-tmp')), [])
  t.same(listArchives(dataDir), [])
  await second.close()
})
