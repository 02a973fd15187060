// Root restores into the data directory of another user, whose processes may exchange its content meanwhile: with the rights of
// that user.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { PROJECT_DIR } from '../../../support/project.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { backUp } from './support.ts'

const UID = 54_321
const options = process.getuid?.() === 0 ? {} : { skip: 'only root can restore for another user' }

function createDataDir(t: Test) {
  const root = createTempDir(t, 'as-root')
  chmodSync(root, 0o755)
  const dataDir = join(root, 'data')
  mkdirSync(dataDir, { mode: 0o755 })
  chownSync(dataDir, UID, UID)
  return dataDir
}

/** Returns the exit code. */
async function runRestore(dataDir: string, file: string): Promise<number> {
  const child = spawn(join(PROJECT_DIR, 'boxwood'), ['restore', file], {
    stdio: 'ignore',
    env: { ...process.env, BOXWOOD_DATA: dataDir, BOXWOOD_DATABASE_URL: '' },
  })
  const [code] = await once(child, 'exit')
  return code
}

t.test('the files belong to the user of the directory', options, async (t) => {
  const { dataDir: source } = await startTestCoordinator(t, { env: { BOXWOOD_DATABASE_URL: '' } })
  const file = await backUp(t, source)
  const dataDir = createDataDir(t)
  t.equal(await runRestore(dataDir, file), 0)
  const names = readdirSync(dataDir)
  t.ok(names.includes('boxwood.db'))
  t.same(
    names.filter((name) => lstatSync(join(dataDir, name)).uid !== UID),
    [],
  )
})

t.test('root has only the rights of the user', options, async (t) => {
  const { dataDir: source } = await startTestCoordinator(t, { env: { BOXWOOD_DATABASE_URL: '' } })
  const file = await backUp(t, source)
  const dataDir = createDataDir(t)
  chmodSync(dataDir, 0o555)
  t.equal(await runRestore(dataDir, file), 1)
  t.same(readdirSync(dataDir), [])
})

t.test('another user can replace the directory', options, async (t) => {
  const dataDir = createDataDir(t)
  chmodSync(dirname(dataDir), 0o777)
  const { dataDir: source } = await startTestCoordinator(t, { env: { BOXWOOD_DATABASE_URL: '' } })
  t.equal(await runRestore(dataDir, await backUp(t, source)), 1)
  t.same(readdirSync(dataDir), [])
})
