// A coordinator that is killed at any moment leaves boxes that the next one finds and manages.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { boxPaths, readMachine } from '../../../../coordinator/providers/local/machine-file.ts'
import { isAlive } from '../../../../coordinator/providers/parts/proc.ts'
import { firstOutput } from '../../../support/first-output.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { createDataDir, createMachineSpec, openHost, openProvider, startBox } from './support.ts'

const STARTER = new URL('fixtures/start-and-wait.ts', import.meta.url).pathname

testEachLevel('finds and stops a box that a killed coordinator started', async (test, level) => {
  // Skips the test at a level that does not work on this machine: there the child would exit without output.
  const host = await openHost(await createDataDir(test), { level })
  await host.close()
  const dataDir = await createDataDir(test)
  const seconds = uniqueSleepSeconds()
  const spec = createMachineSpec()
  const child = spawn(process.execPath, [STARTER, dataDir, level, spec.boxId, seconds], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await firstOutput(child)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const next = await openProvider(dataDir, { level })
  test.teardown(() => next.destroy(spec.boxId))
  test.equal(await next.inspect(spec.boxId), 'running', 'the box outlives its coordinator')
  await waitUntil("the box's process runs", () => findSleepPids(seconds).length === 1)

  const paths = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  const machine = JSON.parse(await readFile(paths.machine, 'utf8')) as object
  await writeFile(paths.machine, JSON.stringify({ ...machine, init: null }))
  test.equal(await next.inspect(spec.boxId), 'running', 'a box whose init was not recorded is found')
  await next.start(spec)
  const init = (await readMachine(paths))?.init
  test.ok(init && isAlive(init), 'start records the running init')
  test.equal(findSleepPids(seconds).length, 1, 'start does not launch a second init')
  await next.stop(spec.boxId)
  test.same(findSleepPids(seconds), [])
})

t.test("does not signal another process that has reused the init's pid", async (test) => {
  const { provider, spec, paths } = await startBox(test, { level: 'process' })
  await provider.stop(spec.boxId)
  const otherProcess = spawn('sleep', ['600'])
  await once(otherProcess, 'spawn')
  test.teardown(() => otherProcess.kill('SIGKILL'))
  const machine = JSON.parse(await readFile(paths.machine, 'utf8')) as object
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const init = { pid: otherProcess.pid, startTicks: 1, bootId }
  await writeFile(paths.machine, JSON.stringify({ ...machine, init }))
  test.equal(await provider.inspect(spec.boxId), 'stopped')
  await provider.stop(spec.boxId)
  test.same([otherProcess.exitCode, otherProcess.signalCode], [null, null], 'the process is still running')
})

// At the other levels the kernel terminates them with the init.
t.test('terminates processes that outlived their init before the next start', async (test) => {
  const seconds = uniqueSleepSeconds()
  const script = `[ -e started ] && exec sleep 600; : >started; setsid sleep ${seconds} & exec sleep 600`
  const { provider, spec, paths } = await startBox(test, { level: 'process', script })
  await waitUntil("the box's process runs", () => findSleepPids(seconds).length === 1)
  const init = (await readMachine(paths))?.init
  if (!init) throw new Error('the box does not run')
  process.kill(init.pid, 'SIGKILL')
  await waitUntil('the box has stopped', async () => (await provider.inspect(spec.boxId)) === 'stopped')
  await provider.start(spec)
  test.same(findSleepPids(seconds), [])
})
