// A destroy leaves nothing: no process, no file of whatever mode, no cgroup.
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pidsWithArgument, uniqueSeconds } from './processes.ts'
import { ALL_LEVELS, eachLevel, newSpec, readWhenThere, startBox, until } from './support.ts'

eachLevel(ALL_LEVELS, async (test, level) => {
  const sleeper = uniqueSeconds()
  const script = `mkdir -p "$HOME/odd/inner"; echo x >"$HOME/odd/inner/file"; ln -s / "$HOME/odd/link"
chmod 000 "$HOME/odd/inner/file" "$HOME/odd/inner"; chmod 500 "$HOME/odd"
setsid sleep ${sleeper} &
echo yes >"$HOME/ready"`
  const { provider, spec, dataDir, paths, inHome } = await startBox(test, { level, script })
  await readWhenThere(inHome('ready'))
  await until(() => pidsWithArgument(sleeper).length === 1, 'the sleeper runs')
  const { cgroups } = JSON.parse(await readFile(paths.machine, 'utf8')) as { cgroups: string[] }
  await provider.destroy(spec.boxId)
  test.equal(await provider.inspect(spec.boxId), 'absent')
  test.same(pidsWithArgument(sleeper), [])
  test.same(readdirSync(join(dataDir, 'boxes')), [])
  for (const dir of cgroups) test.throws(() => readdirSync(dir), { code: 'ENOENT' }, `${dir} is gone`)
  await provider.destroy(spec.boxId)
  await provider.stop(spec.boxId)
  await test.rejects(provider.start(spec), /has no machine/)
  await provider.destroy(newSpec().boxId)
  await test.rejects(provider.destroy('../../etc'), /not a box id/)
})
