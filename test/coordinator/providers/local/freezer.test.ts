// The freezers of both versions of cgroups.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { removeCgroups } from '../../../../coordinator/providers/local/cgroups.ts'
import { findFreezer, freeze, isFreezing, thaw } from '../../../../coordinator/providers/local/freezer.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { terminateProcesses } from '../../../../coordinator/providers/local/terminate-processes.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const OBSERVE_MS = 100

/** The mount point of the cgroup file system with the freezer of this version. */
const findMount = (version: 1 | 2): string | undefined =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .find((line) =>
      version === 2 ? line.includes(' - cgroup2 ') : / - cgroup .*[ ,]freezer(,|$)/.test(line),
    )
    ?.split(' ')[4]

function createCgroup(test: Test, mount: string): string | null {
  const dir = join(mount, `boxwood-test-${process.pid}-${newUuid()}`)
  try {
    mkdirSync(dir)
  } catch {
    return null
  }
  test.teardown(() => removeCgroups([dir]))
  return dir
}

for (const version of [1, 2] as const) {
  t.test(`the freezer of cgroup version ${version}`, async (test) => {
    const mount = findMount(version)
    const dir = mount === undefined ? null : createCgroup(test, mount)
    if (dir === null) return void test.pass('', { skip: 'this user cannot create such a cgroup' })
    const freezer = findFreezer(['/nonexistent', dir])
    test.same(freezer, { version, dir })
    if (freezer === null) return

    const temp = createTempDir(test, 'freezer')
    const count = join(temp, 'count')
    const script = `echo $$ >${dir}/cgroup.procs
trap 'echo TERM >${temp}/signal; exit' TERM
i=0
while :; do i=$((i+1)); echo $i >${count}.new; mv ${count}.new ${count}; sleep 0.01; done`
    const child = spawn('/bin/sh', ['-c', script], { stdio: 'ignore', env: { PATH: process.env.PATH } })
    const exited = once(child, 'exit')
    test.teardown(() => {
      thaw(freezer)
      child.kill('SIGKILL')
    })
    const readCount = () => Number(readFileSync(count, 'utf8'))
    await waitUntil('the process runs', () => existsSync(count))

    test.equal(isFreezing(freezer), false)
    test.equal(await freeze(freezer), true)
    test.equal(isFreezing(freezer), true)
    const frozenAt = readCount()
    await sleep(OBSERVE_MS)
    test.equal(readCount(), frozenAt)
    thaw(freezer)
    test.equal(isFreezing(freezer), false)
    await waitUntil('the process continues', () => readCount() > frozenAt)

    test.equal(await freeze(freezer), true)
    const boxId = newUuid()
    const machine = {
      boxId,
      uid: null,
      level: 'process',
      isolation: null,
      init: null,
      cgroups: [dir],
    } as const
    await terminateProcesses(boxPaths(temp, boxId), { ...machine, cgroups: [dir] }, 2_000)
    await exited
    test.equal(readFileSync(join(temp, 'signal'), 'utf8'), 'TERM\n', 'a frozen process can exit by itself')
  })
}

t.test('version 1 freezes processes that the first attempt missed', async (test) => {
  const dir = createTempDir(test, 'freezer')
  const state = join(dir, 'freezer.state')
  // The kernel ignores the first write.
  symlinkSync('/dev/null', state)
  const freezing = freeze({ version: 1, dir })
  unlinkSync(state)
  writeFileSync(state, 'FREEZING\n')
  test.equal(await freezing, true)
  test.equal(readFileSync(state, 'utf8'), 'FROZEN')
})

t.test('a cgroup with a process that cannot be frozen is thawed', async (test) => {
  const dir = createTempDir(test, 'freezer')
  writeFileSync(join(dir, 'cgroup.freeze'), '0')
  writeFileSync(join(dir, 'cgroup.events'), 'populated 1\nfrozen 0\n')
  const freezer = { version: 2, dir } as const
  const freezing = freeze(freezer, 50)
  test.equal(isFreezing(freezer), true)
  test.equal(await freezing, false)
  test.equal(isFreezing(freezer), false)
})
