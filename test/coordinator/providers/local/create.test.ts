// Creating and starting a local box: its state, its token file, and the uid of each box.
import { readFile, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { testEachLevel } from './each-level.ts'
import { createDataDir, createMachineSpec, isRoot, openProvider, startBox } from './support.ts'

testEachLevel('creates a stopped box with its own uid', async (test, level) => {
  const dataDir = await createDataDir(test)
  const provider = await openProvider(dataDir, { level })
  const [spec, secondSpec] = [createMachineSpec(), createMachineSpec()]
  test.teardown(() => Promise.all([provider.destroy(spec.boxId), provider.destroy(secondSpec.boxId)]))
  const readHomeUid = async (boxId: string) => (await stat(boxPaths(join(dataDir, 'boxes'), boxId).home)).uid
  test.equal(await provider.inspect(spec.boxId), 'absent')
  await provider.create(spec)
  test.equal(await provider.inspect(spec.boxId), 'stopped')
  const uid = await readHomeUid(spec.boxId)
  await provider.create(spec)
  test.equal(await readHomeUid(spec.boxId), uid)

  await provider.create(secondSpec)
  const secondUid = await readHomeUid(secondSpec.boxId)
  if (isRoot) test.not(secondUid, uid, 'each box has its own uid')
  else test.equal(secondUid, process.getuid?.())
})

testEachLevel('replaces the token at each start, without following a symlink', async (test, level) => {
  const { provider, spec, paths, dataDir } = await startBox(test, { level })
  const tokenPath = join(paths.state, 'token')
  test.equal(await readFile(tokenPath, 'utf8'), spec.agentToken)
  const { uid } = await stat(paths.state)
  const targetPath = join(dataDir, 'target')
  await writeFile(targetPath, 'unchanged')
  await symlink(targetPath, `${tokenPath}.symlink`)
  await rename(`${tokenPath}.symlink`, tokenPath)
  const expectToken = async (token: string) => {
    test.equal(await readFile(tokenPath, 'utf8'), token)
    test.match(await stat(tokenPath), { uid, mode: 0o100600 })
  }

  await provider.start({ ...spec, agentToken: 'bxt_running' })
  await expectToken('bxt_running')
  test.equal(await readFile(targetPath, 'utf8'), 'unchanged')
  await provider.stop(spec.boxId)
  await provider.start({ ...spec, agentToken: 'bxt_second' })
  await expectToken('bxt_second')
})
