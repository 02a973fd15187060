// Creating a local box: its token file, a repeated create, and the uid of each box.
import { readFile, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { boxPaths } from '../../../../../coordinator/lifecycle/providers/local/machine-file.ts'
import { createDataDir, createMachineSpec, isRoot, openProvider, testEachLevel } from './support.ts'

testEachLevel('replaces the token on a second create, without following a symlink', async (test, level) => {
  const dataDir = await createDataDir(test)
  const provider = await openProvider(dataDir, { level })
  const [spec, secondSpec] = [createMachineSpec(), createMachineSpec()]
  test.teardown(() => Promise.all([provider.destroy(spec.boxId), provider.destroy(secondSpec.boxId)]))
  test.equal(await provider.inspect(spec.boxId), 'absent')
  await provider.create({ ...spec, agentToken: 'bxt_first' })
  test.equal(await provider.inspect(spec.boxId), 'stopped')
  const paths = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  const tokenPath = join(paths.state, 'token')
  const tokenUid = (await stat(tokenPath)).uid
  const targetPath = join(dataDir, 'target')
  await writeFile(targetPath, 'unchanged')
  await symlink(targetPath, `${tokenPath}.symlink`)
  await rename(`${tokenPath}.symlink`, tokenPath)

  await provider.create({ ...spec, agentToken: 'bxt_second' })
  test.equal(await readFile(tokenPath, 'utf8'), 'bxt_second')
  test.equal(await readFile(targetPath, 'utf8'), 'unchanged')
  test.match(await stat(tokenPath), { uid: tokenUid, mode: 0o100600 })

  await provider.create({ ...secondSpec, agentToken: 'bxt_other' })
  const secondHome = await stat(boxPaths(join(dataDir, 'boxes'), secondSpec.boxId).home)
  if (isRoot) test.not(secondHome.uid, tokenUid, 'each box has its own uid')
  else test.equal(secondHome.uid, process.getuid?.())
})
