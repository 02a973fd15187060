// Coordinators that are killed at random moments of forks and snapshots: the next one completes them, and nothing is lost or left.
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Level } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { type FileSystem, mountFileSystem } from '../../../support/file-systems.ts'
import { findLevelProblem } from '../../../support/isolation-levels.ts'
import { describeTree } from '../../../support/tree-manifest.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { type Action, NEW_BOXES, runAction, SNAPSHOT } from './run-action.ts'
import { openProvider, startBox } from './support.ts'

const KILLS = 50
/** About how long a fork or a snapshot takes. */
const MAX_DELAY_MS = 600
const FIXTURE = new URL('fixtures/fork-or-snapshot.ts', import.meta.url).pathname

const SCRIPT = `mkdir -p tree/dir && for i in 1 2 3 4; do head -c 1M /dev/urandom >tree/big$i; done
echo text >tree/file && ln tree/file tree/dir/link && chmod 6711 tree/file && mv tree ready
while :; do i=$((i+1)); echo $i >count.new; mv count.new count; sleep 0.02; done`

type Source = { dataDir: string; level: Level; boxId: string; expected: string[] }

const homeOf = (dataDir: string, boxId: string) => boxPaths(join(dataDir, 'boxes'), boxId).home

function describe(dataDir: string, boxId: string): string[] {
  const home = homeOf(dataDir, boxId)
  return describeTree(join(home, 'ready'), { uid: lstatSync(home).uid })
}

/** Kills a coordinator after a random time. */
async function killRandomly({ dataDir, level, boxId }: Source, action: Action, newIds: readonly string[]) {
  const child = spawn(process.execPath, [FIXTURE, dataDir, level, boxId, action, ...newIds], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const ms = randomInt(MAX_DELAY_MS)
  await Promise.race([delay(ms), once(child.stdout, 'data')])
  child.kill('SIGKILL')
  await once(child, 'exit')
  return ms
}

/** Repeats the action, and checks the result. */
async function recover(
  t: Test,
  { dataDir, level, boxId, expected }: Source,
  action: Action,
  newIds: readonly string[],
) {
  const provider = await openProvider(dataDir, { level })
  await runAction(provider, boxId, action, newIds)
  for (const id of newIds) t.strictSame(describe(dataDir, id), expected)
  const count = join(homeOf(dataDir, boxId), 'count')
  const countedAt = statSync(count).mtimeMs
  await waitUntil('the box continues', () => statSync(count).mtimeMs > countedAt)
  for (const id of newIds) await provider.destroy(id)
  await provider.removeArchive(SNAPSHOT)
  await waitUntil('nothing is left of the copies', () => {
    const names = readdirSync(join(dataDir, 'boxes'))
    return names.length === 1 && names[0] === boxId
  })
  const store = join(dataDir, 'archives')
  t.same(existsSync(store) ? readdirSync(store) : [], [], 'nothing is left in the store')
  await provider.close()
}

async function testKills(t: Test, level: Level, fileSystem: FileSystem): Promise<void> {
  const problem = await findLevelProblem(level)
  if (problem !== false) return void t.pass('the level works on this machine', { skip: problem })
  const disk = mountFileSystem(t, fileSystem)
  if ('skip' in disk) return void t.pass(disk.skip, { skip: disk.skip })
  const dataDir = disk.dir
  // At level process, the user of the box enters it.
  chmodSync(dataDir, 0o711)
  const { spec, inHome } = await startBox(t, { level, script: SCRIPT, dataDir })
  await waitUntil('the box has its files', () => existsSync(inHome('count')))
  const { boxId } = spec
  const source = { dataDir, level, boxId, expected: describe(dataDir, boxId) }
  for (let kill = 0; kill < KILLS; kill++) {
    const action = kill % 2 === 0 ? 'fork' : 'snapshot'
    const newIds = Array.from({ length: NEW_BOXES[action] }, newUuid)
    const ms = await killRandomly(source, action, newIds)
    await t.test(`a ${action} that is killed after ${ms} ms`, (t) => recover(t, source, action, newIds))
  }
}

t.test('on a file system with reflinks', (t) => testKills(t, 'bubblewrap', 'xfs'))
t.test('without reflinks', (t) => testKills(t, 'process', 'default'))
