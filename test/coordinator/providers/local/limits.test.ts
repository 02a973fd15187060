// Cgroup limits: each limit that the provider reports is enforced.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { testEachLevel } from './each-level.ts'
import { startBox, waitForFileText } from './support.ts'

/** `tail` buffers 1.3 GB, more than the memory of a nano box. `tail` writes to every page, so the cgroup counts all. */
const EXCEED_MEMORY = `head -c 1300000000 /dev/zero | tail -c 1300000000 >/dev/null; echo $? >"$HOME/out"; mv "$HOME/out" "$HOME/status"`

testEachLevel('kills the process that exceeds the memory limit and nothing else', async (test, level) => {
  const { isolation, inHome, provider, spec } = await startBox(test, { level, script: EXCEED_MEMORY })
  if (!isolation?.limits.includes('memory')) {
    test.pass('memory is not limited on this machine, and not reported as limited')
    return
  }
  test.equal((await waitForFileText(inHome('status'))).trim(), '137', 'the process was killed')
  test.equal(await provider.inspect(spec.boxId), 'running', 'the box is still running')
})

testEachLevel(
  'writes the limits into the cgroups',
  async (test, level) => {
    const { isolation, paths } = await startBox(test, { level })
    const { cgroups } = JSON.parse(readFileSync(paths.machine, 'utf8')) as { cgroups: string[] }
    const readLimits = (name: string) =>
      cgroups.flatMap((dir) => {
        try {
          return readFileSync(join(dir, name), 'utf8').trim()
        } catch {
          return []
        }
      })
    if (isolation?.limits.includes('pids')) test.same(readLimits('pids.max'), ['4096'])
    if (isolation?.limits.includes('cpu')) {
      test.match([...readLimits('cpu.cfs_quota_us'), ...readLimits('cpu.max')].join(), /^100000( 100000)?$/)
    }
    const isFreezer = (dir: string) =>
      existsSync(join(dir, 'cgroup.freeze')) || existsSync(join(dir, 'freezer.state'))
    if (isolation?.limits.length === 0)
      test.ok(cgroups.every(isFreezer), 'a cgroup without limits can freeze')
  },
  ['process'],
)
