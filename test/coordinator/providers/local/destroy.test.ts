// Destroying a local box removes its processes, files and cgroups, and can be repeated.
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { createMachineSpec, startBox, waitForFileText } from './support.ts'

/** 60 nested directories with names of 200 characters: the path is longer than PATH_MAX. */
const CREATE_DEEP_TREE = `(cd "$HOME"; name=$(printf %0200d 0); i=0
while [ $i -lt 60 ]; do mkdir $name && cd -P $name || exit 1; i=$((i + 1)); done)`

testEachLevel('removes every process, file and cgroup of a destroyed box', async (test, level) => {
  const seconds = uniqueSleepSeconds()
  const script = `${CREATE_DEEP_TREE}
mkdir -p "$HOME/dir/inner"; echo x >"$HOME/dir/inner/file"; ln -s / "$HOME/dir/link"
chmod 000 "$HOME/dir/inner/file" "$HOME/dir/inner"; chmod 500 "$HOME/dir"
setsid sleep ${seconds} &
echo yes >"$HOME/ready"; chmod 000 "\${TMPDIR:-/tmp}"`
  const { provider, spec, dataDir, paths, inHome } = await startBox(test, { level, script })
  await waitForFileText(inHome('ready'))
  await waitUntil('the sleep process runs', () => findSleepPids(seconds).length === 1)
  const { cgroups, uid } = JSON.parse(await readFile(paths.machine, 'utf8')) as {
    cgroups: string[]
    uid: number | null
  }
  const listLinks = () =>
    readdirSync(join(dataDir, 'runtime'), { recursive: true }).filter((name) =>
      String(name).endsWith(`-${uid}`),
    )
  if (uid !== null) test.not(listLinks().length, 0, 'the compile cache is linked for the user')
  await provider.destroy(spec.boxId)
  test.equal(await provider.inspect(spec.boxId), 'absent')
  test.same(findSleepPids(seconds), [])
  test.same(readdirSync(join(dataDir, 'boxes')), [])
  test.same(listLinks(), [], 'nothing in the data directory has the name of the user')
  for (const dir of cgroups) test.throws(() => readdirSync(dir), { code: 'ENOENT' }, `${dir} is removed`)
  await provider.destroy(spec.boxId)
  await provider.stop(spec.boxId)
  await test.rejects(provider.start(spec), /machine of the box does not exist/)
  await provider.destroy(createMachineSpec().boxId)
  await test.rejects(provider.destroy('../../etc'), /Not a box id/)
})
