// A box creates empty files until it cannot create more. Other boxes must still run commands.
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { startCoordinatorProcess } from '../coordinator-process.ts'
import { createTempDir } from '../temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'

const INODES = 100_000
/** How many files the box creates at once. It then creates about 500 per second. */
const FIRST_FILES = 80_000
/** In this time the box creates files, unless it is limited. */
const OBSERVATION_MS = 3000
const CREATE_FILES = `mkdir many; cd many; i=0
while :; do
  i=$((i + 1)); true >$i
  [ $i -lt ${FIRST_FILES} ] || [ $((i % 250)) -ne 0 ] || sleep 0.5
done`

/** Returns undefined where this process may not mount a file system. */
export async function runInodesRound(t: Test): Promise<{ freeInodes: number } | undefined> {
  const dataDir = join(createTempDir(t, 'inodes'), 'data')
  mkdirSync(dataDir)
  const options = `size=1g,nr_inodes=${INODES},mode=0711`
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'boxwood-test', dataDir], {
    stdio: 'ignore',
  })
  if (status !== 0) return undefined
  t.teardown(() => spawnSync('umount', ['--lazy', dataDir]))
  const coordinator = await startCoordinatorProcess(t, { BOXWOOD_DATA: dataDir, BOXWOOD_LOG: 'silent' })
  const box = await coordinator.waitForFirstBox()
  const created = await coordinator.sendJson('POST', '/api/v1/boxes', { name: 'many-files' })
  await coordinator.waitForState(created.box.id, 'running')
  const readFreeInodes = async () => (await statfs(dataDir)).ffree
  await coordinator.exec('many-files', CREATE_FILES, { detached: true })
  await waitUntil('the box has many files', async () => (await readFreeInodes()) < INODES - FIRST_FILES)

  const exec = async () => {
    const { stdout } = await coordinator.exec(box.hostname, 'echo works >file; cat file; rm file')
    return stdout === 'works\n'
  }
  /** The box is stopped, or may not create more files: the number of free inodes does not fall any more. */
  const isLimited = async () => {
    const before = await readFreeInodes()
    await delay(OBSERVATION_MS)
    return (await exec()) && (await readFreeInodes()) > before - 100
  }
  t.ok(await waitUntil('the box cannot create more files', isLimited, LONG_DEADLINE_MS), 'the box is limited')
  for (let number = 0; number < 10; number++) t.ok(await exec(), 'another box runs a command')
  const { operation } = await coordinator.sendJson('DELETE', `/api/v1/boxes/${created.box.id}`)
  t.ok(operation, 'the box can be deleted')
  await coordinator.waitForState(created.box.id, 'terminated')
  return { freeInodes: await readFreeInodes() }
}
