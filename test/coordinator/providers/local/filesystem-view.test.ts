// The mount list of a namespaced box hides project and data directories that are inside system directories.
import { mkdir } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { buildMountList } from '../../../../coordinator/providers/local/filesystem-view.ts'
import { boxPathsIn } from '../../../../coordinator/providers/local/machine-file.ts'
import { createDataDir, projectRoot } from './support.ts'

async function listHiddenPaths(test: Test, dirs: { projectRoot: string; dataDir: string }) {
  const paths = boxPathsIn(await createDataDir(test))
  await mkdir(paths.etc)
  const mounts = buildMountList({
    paths,
    runtimeDir: '/nonexistent',
    nodePath: process.execPath,
    socketDir: null,
    ...dirs,
  })
  return mounts.filter(({ kind }) => kind === 'tmpfs').map(({ path }) => path)
}

t.test('hides nothing when both directories are outside the system directories', async (test) => {
  test.same(await listHiddenPaths(test, { projectRoot: '/proc', dataDir: '/proc/self/fd' }), [])
})

t.test('hides a project in /usr and the data directory inside it with one mount', async (test) => {
  test.same(await listHiddenPaths(test, { projectRoot: '/usr/share', dataDir: '/usr/share/doc' }), [
    '/usr/share',
  ])
})

t.test('hides a data directory in /usr', async (test) => {
  test.same(await listHiddenPaths(test, { projectRoot, dataDir: '/usr/share' }), ['/usr/share'])
})

t.test('hides a data directory that is a system directory', async (test) => {
  test.same(await listHiddenPaths(test, { projectRoot, dataDir: '/usr' }), ['/usr'])
})
