// Hiding the project and data directories inside system directories, which every namespaced box sees.
import { mkdir } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { buildMountList } from '../../../../../coordinator/lifecycle/providers/local/filesystem-view.ts'
import { boxPathsIn } from '../../../../../coordinator/lifecycle/providers/local/machine-file.ts'
import { createDataDir, projectRoot } from './support.ts'

async function listHiddenPaths(test: Test, dirs: { projectRoot: string; dataDir: string }) {
  const paths = boxPathsIn(await createDataDir(test))
  await mkdir(paths.etc)
  const mounts = buildMountList({ paths, runtimeDir: '/nowhere', nodePath: process.execPath, ...dirs })
  return mounts.filter(({ kind }) => kind === 'tmpfs').map(({ path }) => path)
}

t.test('hides nothing when both directories are outside the system directories', async (test) => {
  test.same(await listHiddenPaths(test, { projectRoot: '/proc', dataDir: '/proc/self/fd' }), [])
})

t.test('hides a project in /usr together with the data directory inside it', async (test) => {
  test.same(await listHiddenPaths(test, { projectRoot: '/usr/share', dataDir: '/usr/share/doc' }), [
    '/usr/share',
  ])
})

t.test('hides a data directory in /usr', async (test) => {
  test.same(await listHiddenPaths(test, { projectRoot, dataDir: '/usr/share' }), ['/usr/share'])
})
