// A project or data folder that lies in a folder every box sees is hidden in it.
import { mkdir } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { pathsIn } from '../../../../coordinator/lifecycle/providers/local/machine-file.ts'
import { boxView } from '../../../../coordinator/lifecycle/providers/local/view.ts'
import { makeDataDir, projectRoot } from './support.ts'

async function hiddenIn(test: Test, folders: { projectRoot: string; dataDir: string }) {
  const paths = pathsIn(await makeDataDir(test))
  await mkdir(paths.etc)
  const mounts = boxView({ paths, runtimeDir: '/nowhere', nodePath: process.execPath, ...folders })
  return mounts.filter(({ kind }) => kind === 'empty').map(({ at }) => at)
}

t.test('what lies elsewhere needs no hiding', async (test) => {
  test.same(await hiddenIn(test, { projectRoot: '/proc', dataDir: '/proc/self/fd' }), [])
})

t.test('a project in /usr with the data folder in it', async (test) => {
  test.same(await hiddenIn(test, { projectRoot: '/usr/share', dataDir: '/usr/share/doc' }), ['/usr/share'])
})

t.test('a data folder in /usr alone', async (test) => {
  test.same(await hiddenIn(test, { projectRoot, dataDir: '/usr/share' }), ['/usr/share'])
})
