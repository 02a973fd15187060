// Making a machine twice puts the new token in place of the old, whatever the box planted there.
import { readFile, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { boxPaths } from '../../../../coordinator/lifecycle/providers/local/machine-file.ts'
import { ALL_LEVELS, eachLevel, isRoot, makeDataDir, newSpec, openProvider } from './support.ts'

eachLevel(ALL_LEVELS, async (test, level) => {
  const dataDir = await makeDataDir(test)
  const provider = await openProvider(dataDir, { level })
  const [spec, second] = [newSpec(), newSpec()]
  test.teardown(() => Promise.all([provider.destroy(spec.boxId), provider.destroy(second.boxId)]))
  test.equal(await provider.inspect(spec.boxId), 'absent')
  await provider.create({ ...spec, agentToken: 'bxt_first' })
  test.equal(await provider.inspect(spec.boxId), 'stopped')
  const paths = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  const token = join(paths.state, 'token')
  const owner = (await stat(token)).uid
  const victim = join(dataDir, 'victim')
  await writeFile(victim, 'untouched')
  await symlink(victim, `${token}.planted`)
  await rename(`${token}.planted`, token)

  await provider.create({ ...spec, agentToken: 'bxt_second' })
  test.equal(await readFile(token, 'utf8'), 'bxt_second')
  test.equal(await readFile(victim, 'utf8'), 'untouched')
  test.match(await stat(token), { uid: owner, mode: 0o100600 })

  await provider.create({ ...second, agentToken: 'bxt_other' })
  const other = await stat(boxPaths(join(dataDir, 'boxes'), second.boxId).home)
  if (isRoot) test.not(other.uid, owner, 'each box has a uid of its own')
  else test.equal(other.uid, process.getuid?.())
})
