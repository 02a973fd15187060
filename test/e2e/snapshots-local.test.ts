// Snapshots of a real box on this machine: a snapshot while the box writes, a restore, a fork, a template and a final snapshot.

import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { enqueueSleep } from '../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import { lockBox } from '../../coordinator/db/lock-box.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import { boxPaths } from '../../coordinator/providers/local/machine-file.ts'
import type { TestCoordinator } from '../support/coordinator.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { describeTree } from '../support/tree-manifest.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'
import { takeSnapshot, waitForStatus, waitUntilAbsent } from './snapshots-support.ts'

/** The test reads the files of the box: only root can read a directory of mode 0. */
const EMPTY_MODE = process.getuid?.() === 0 ? '0' : '500'

const CREATE_FILES = `
set -e
mkdir -p tree/empty tree/a/b
head -c 3000000 /dev/urandom > tree/random
printf x > "tree/odd \\"name\\" $(printf '\\377')"
ln -s ../missing tree/a/link
ln tree/random tree/a/hard
mkfifo tree/fifo
truncate -s 10M tree/sparse
chmod 4711 tree/a/b
chmod ${EMPTY_MODE} tree/empty
echo ready`

/** Replaces two files with the same number, one after the other. */
const WRITE =
  'i=0; while :; do i=$((i+1)); for name in first second; do echo $i > new; mv new $name; done; done'

/** Suspends the box and packs it, as its schedule does after some days. */
async function sleep({ api, instance, waitForState }: TestCoordinator, boxId: string): Promise<void> {
  const { db, lifecycle, clock } = instance.context
  await api('POST', `/boxes/${boxId}/suspend?stop=1`)
  await waitForState(boxId, 'suspended')
  await transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (box) await enqueueSleep(trx, box, { reason: 'packed into an archive', now: clock.now() })
  })
  lifecycle.schedule(boxId)
  await waitForState(boxId, 'deep_sleep')
}

t.test('copies of a real box have the same files', async (t) => {
  const coordinator = await startCoordinatorWithBox(t, {
    env: { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_FINAL_SNAPSHOTS: 'on' },
  })
  const { api, edge, box, dataDir, exec, waitForState } = coordinator
  const describe = (id: string) => {
    const { home } = boxPaths(join(dataDir, 'boxes'), id)
    return describeTree(join(home, 'tree'), { uid: lstatSync(home).uid })
  }
  t.match(await exec(CREATE_FILES), { exitCode: 0, stdout: 'ready\n' })
  const original = describe(box.id)
  const { processId } = await exec(WRITE, { detached: true })
  t.ok(processId)

  const snapshotId = await takeSnapshot(coordinator, box.id)
  const snapshot = await waitForStatus(coordinator, snapshotId, 'available')
  t.ok(snapshot.sizeGb >= 0.003, `sizeGb ${snapshot.sizeGb}`)
  t.ok(snapshot.pausedMs >= 0, `pausedMs ${snapshot.pausedMs}`)
  t.match(await coordinator.boxRequest('GET', `/exec/${processId}`), { json: { running: true } })

  const { json: restored } = await api('POST', `/snapshots/${snapshotId}/restore`, { name: 'fig' })
  await waitForState(restored.box.id, 'running')
  t.same(describe(restored.box.id), original, 'restored')
  const { json: counters } = await edge('fig', 'POST', '/exec', { command: 'cat first second' })
  const [first, second] = counters.stdout.split('\n').map(Number)
  t.ok(first === second || first === second + 1, `the files are of one moment: ${first}, ${second}`)
  t.match((await edge('fig', 'GET', '/exec')).json, { processes: [] }, 'no process of the source')
  t.same(
    (await api('GET', `/boxes/${restored.box.id}/commands`)).json.commands.map(
      ({ command }: { command: string }) => command,
    ),
    ['cat first second'],
  )

  const { json: fork } = await api('POST', `/boxes/${box.id}/fork`, {})
  const { json: template } = await api('POST', `/boxes/${restored.box.id}/template`, { name: 'base' })
  await waitForState(fork.box.id, 'running')
  t.same(describe(fork.box.id), original, 'forked')
  await waitUntilAbsent(coordinator, fork.snapshot.id)
  await waitForStatus(coordinator, template.snapshot.id, 'available')
  const { json: created } = await api('POST', '/boxes', { fromTemplate: 'base' })
  await waitForState(created.box.id, 'running')
  t.same(describe(created.box.id), original, 'created from the template')

  await sleep(coordinator, fork.box.id)
  const { json: ofSleeping } = await api('POST', `/boxes/${fork.box.id}/fork`, {})
  await waitForState(ofSleeping.box.id, 'running')
  t.same(describe(ofSleeping.box.id), original, 'forked from a box in deep sleep')
  const { json: unchanged } = await api('GET', `/boxes/${fork.box.id}`)
  t.match(unchanged, { box: { observedState: 'deep_sleep', desiredState: 'suspended' }, job: null })

  await api('DELETE', `/boxes/${created.box.id}`)
  await waitForState(created.box.id, 'terminated')
  const { snapshots } = (await api('GET', '/snapshots')).json
  const final = snapshots.find(({ kind }: { kind: string }) => kind === 'final')
  t.match(final, { boxId: created.box.id, status: 'available' })
  const { json: again } = await api('POST', `/snapshots/${final.id}/restore`, {})
  await waitForState(again.box.id, 'running')
  t.same(describe(again.box.id), original, 'restored from the final snapshot')
})
