// Removing the directories of boxes: nothing outside is changed, and a failure is reported until nothing is left.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { removeTree } from '../../../../coordinator/providers/local/directories.ts'
import { FIRST_BOX_UID } from '../../../../coordinator/providers/local/machine-file.ts'
import { firstOutput } from '../../../support/first-output.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createDataDir, isRoot, openProvider, startBox } from './support.ts'

const SWAPPER = new URL('fixtures/swap-with-symlink.ts', import.meta.url).pathname

t.test(
  'removes nothing outside while the box replaces its directories by symlinks',
  { skip: isRoot ? false : 'needs root: otherwise the box has the rights of the coordinator' },
  async (test) => {
    const dataDir = await createDataDir(test)
    const outside = join(dataDir, 'outside')
    mkdirSync(join(outside, 'inner'), { recursive: true })
    for (let index = 0; index < 20; index++) writeFileSync(join(outside, `file-${index}`), '')
    const boxDir = join(dataDir, 'box')
    const home = join(boxDir, 'home')
    mkdirSync(home, { recursive: true })
    chownSync(home, FIRST_BOX_UID, FIRST_BOX_UID)
    const before = [statSync(outside).mode, statSync(join(outside, 'inner')).mode]
    const swapper = spawn(process.execPath, [SWAPPER, home, String(FIRST_BOX_UID), outside], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    test.teardown(() => swapper.kill('SIGKILL'))
    await firstOutput(swapper)
    // The removal may fail, because the swapper creates entries meanwhile.
    await removeTree(boxDir).catch(() => {})
    const exited = once(swapper, 'exit')
    swapper.kill('SIGKILL')
    await exited
    test.same([statSync(outside).mode, statSync(join(outside, 'inner')).mode], before, 'modes are unchanged')
    test.equal(readdirSync(outside).length, 21, 'all files outside are left')
    await removeTree(boxDir)
    test.notOk(existsSync(boxDir), 'everything is removed once the box has no processes')
  },
)

t.test(
  'removes directories that another box created in a box',
  { skip: isRoot ? false : 'needs root' },
  async (test) => {
    const boxDir = join(await createDataDir(test), 'box')
    const foreignDir = join(boxDir, 'home', 'foreign')
    mkdirSync(join(foreignDir, 'inner'), { recursive: true })
    chownSync(join(boxDir, 'home'), FIRST_BOX_UID, FIRST_BOX_UID)
    for (const dir of [join(foreignDir, 'inner'), foreignDir]) {
      chmodSync(dir, 0o700)
      chownSync(dir, FIRST_BOX_UID + 1, FIRST_BOX_UID + 1)
    }
    await removeTree(boxDir)
    test.notOk(existsSync(boxDir))
  },
)

/** Makes it impossible to remove `dir`. Returns the function that makes it possible again. */
function blockRemoval(test: Test, dir: string): () => void {
  const inner = join(dir, 'inner')
  if (isRoot) {
    mkdirSync(inner, { recursive: true })
    test.equal(spawnSync('mount', ['-t', 'tmpfs', 'boxwood-test', inner]).status, 0)
  } else chmodSync(join(dir, '..'), 0o500)
  let isBlocked = true
  const unblock = () => {
    if (!isBlocked) return
    isBlocked = false
    if (isRoot) spawnSync('umount', [inner])
    else chmodSync(join(dir, '..'), 0o700)
  }
  test.teardown(unblock)
  return unblock
}

t.test('destroy fails until nothing is left', async (test) => {
  const { provider, spec, paths } = await startBox(test, { level: 'process' })
  const unblock = blockRemoval(test, paths.dir)
  for (const attempt of ['first', 'second']) {
    await test.rejects(
      provider.destroy(spec.boxId),
      { message: `Failed to remove ${paths.dir}: ` },
      `${attempt} attempt`,
    )
    test.ok(existsSync(paths.dir))
  }
  unblock()
  await provider.destroy(spec.boxId)
  test.notOk(existsSync(paths.dir))
})

const skip = isRoot ? false : 'needs root to mount a file system'
t.test('starts with leftovers that cannot be removed, and removes them later', { skip }, async (test) => {
  const dataDir = await createDataDir(test)
  const leftover = join(dataDir, 'boxes', '.removed-leftover')
  mkdirSync(leftover, { recursive: true })
  const unblock = blockRemoval(test, leftover)
  const warnings: string[] = []
  const log = {
    debug: () => {},
    info: () => {},
    warn: (_fields: object, message: string) => void warnings.push(message),
  }
  const first = await openProvider(dataDir, { level: 'process', log })
  await waitUntil('the failure is logged', () => warnings.length > 0)
  test.same(warnings, ['failed to remove a directory that is no longer used'])
  await first.close()
  unblock()
  const second = await openProvider(dataDir, { level: 'process', log })
  await waitUntil('the leftover is removed', () => !existsSync(leftover))
  test.equal(warnings.length, 1)
  await second.close()
})
