// Deletes a box with hostile files and processes, while the coordinator is killed. Nothing of the box may remain.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { listBoxPids } from '../find-agent-process.ts'
import { createSeededRandom } from '../random.ts'
import { waitUntil } from '../wait-until.ts'
import type { ChaosSetup } from './chaos-round.ts'

/** Each command leaves something that a simple removal cannot delete, or that survives a simple termination. */
const HOSTILE_COMMANDS = {
  // Its path is 12 000 bytes long, three times PATH_MAX.
  'a directory tree deeper than PATH_MAX':
    'i=0; while [ $i -lt 60 ]; do d=$(printf %0200d $i); mkdir $d; cd -P $d || exit 1; i=$((i + 1)); done',
  'directories without permissions':
    'mkdir -p locked/inner; touch locked/inner/file; chmod 0 locked/inner locked',
  'symlinks to directories': 'ln -s / root; ln -s .. parent; mkdir links; ln -s /tmp links/tmp',
  'a process that ignores SIGTERM and restarts itself':
    'setsid sh -c "trap \'\' TERM HUP; while :; do sleep 1; done" </dev/null >/dev/null 2>&1 &',
}

/** Creates a box, deletes it during a restart of the coordinator, and asserts on `t` that nothing of it remains. */
export async function runDeletionRound(t: Test, setup: ChaosSetup, { seed }: { seed: number }) {
  const { coordinator, box: otherBox } = setup
  const random = createSeededRandom(seed)
  const hostname = `deleted-${seed}`
  const { box } = await coordinator.sendJson('POST', '/api/v1/boxes', { name: hostname })
  await coordinator.waitForState(box.id, 'running')
  for (const [name, command] of Object.entries(HOSTILE_COMMANDS)) {
    const { exitCode, stderr } = await coordinator.exec(hostname, command)
    t.equal(exitCode, 0, `created ${name}: ${stderr}`)
  }

  await coordinator.sendJson('DELETE', `/api/v1/boxes/${box.id}`)
  await delay(random() * 300)
  await coordinator.kill('SIGKILL')
  await setup.restartCoordinator()
  await coordinator.waitForState(box.id, 'terminated')
  t.same(listBoxPids(box.id), [], 'no process of the deleted box remains')
  const boxesDir = join(coordinator.dataDir, 'boxes')
  // A restarted coordinator sweeps partly removed directories in the background.
  await waitUntil('no file of the deleted box remains', () =>
    readdirSync(boxesDir).every((name) => !name.includes(box.id)),
  )
  const { exitCode } = await coordinator.exec(otherBox.hostname, 'true')
  t.equal(exitCode, 0, 'the other box runs commands')
}
