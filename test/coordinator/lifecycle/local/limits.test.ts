// What is reported as limited is limited: a box that takes too much memory, processes or CPU is held.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ALL_LEVELS, eachLevel, readWhenThere, startBox } from './support.ts'

/** More than a nano box may have; touched page by page, so that it counts. */
const GREEDY = `head -c 1300000000 /dev/zero | tail -c 1300000000 >/dev/null; echo $? >"$HOME/out"; mv "$HOME/out" "$HOME/status"`

eachLevel(ALL_LEVELS, async (test, level) => {
  const { isolation, inHome, provider, spec } = await startBox(test, { level, script: GREEDY })
  if (!isolation?.limits.includes('memory')) {
    test.pass('memory is not limited here, and not said to be')
    return
  }
  test.equal((await readWhenThere(inHome('status'))).trim(), '137', 'the greedy process was ended')
  test.equal(await provider.inspect(spec.boxId), 'running', 'and nothing else')
})

eachLevel(['process'], async (test, level) => {
  const { isolation, paths } = await startBox(test, { level })
  const { cgroups } = JSON.parse(readFileSync(paths.machine, 'utf8')) as { cgroups: string[] }
  const read = (name: string) =>
    cgroups.flatMap((dir) => {
      try {
        return readFileSync(join(dir, name), 'utf8').trim()
      } catch {
        return []
      }
    })
  if (isolation?.limits.includes('pids')) test.same(read('pids.max'), ['4096'])
  if (isolation?.limits.includes('cpu')) {
    test.match([...read('cpu.cfs_quota_us'), ...read('cpu.max')].join(), /^100000( 100000)?$/)
  }
  if (isolation?.limits.length === 0) test.same(cgroups, [])
})
