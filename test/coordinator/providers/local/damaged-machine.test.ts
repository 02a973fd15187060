// A box whose machine file is damaged, or whose directory was removed, can be stopped, restarted and deleted.
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import type { Test } from 'tap'
import type { Level } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { type Machine, readMachine } from '../../../../coordinator/providers/local/machine-file.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { createMachineSpec, openProvider, startBox } from './support.ts'

/** Starts a box with two processes, one of them without the environment of the box. */
async function startBoxWithProcesses(test: Test, level: Level) {
  const seconds = uniqueSleepSeconds()
  const strippedSeconds = uniqueSleepSeconds()
  const script = `setsid sleep ${seconds} & env -i sleep ${strippedSeconds} &`
  const box = await startBox(test, { level, script })
  const findProcesses = () => [seconds, strippedSeconds].flatMap(findSleepPids)
  await waitUntil('both processes run', () => findProcesses().length === 2)
  const { cgroups } = (await readMachine(box.paths)) as Machine
  return { ...box, findProcesses, cgroups }
}

testEachLevel('restarts and deletes a box with a damaged machine file', async (test, level) => {
  const { provider, spec, dataDir, paths, findProcesses, cgroups } = await startBoxWithProcesses(test, level)
  await writeFile(paths.machine, '{"boxId":')
  await provider.close()
  const warnings: object[] = []
  const log = { debug: () => {}, info: () => {}, warn: (fields: object) => void warnings.push(fields) }
  const next = await openProvider(dataDir, { level, log })
  test.teardown(() => next.close())
  test.match(warnings, [{ boxId: spec.boxId, err: Error }], 'the damaged file is logged')

  const otherSpec = createMachineSpec()
  await next.create(otherSpec)
  test.equal(await next.inspect(otherSpec.boxId), 'stopped', 'other boxes can be created')

  await next.start({ ...spec, agentToken: 'bxt_second' })
  test.equal(await next.inspect(spec.boxId), 'running')
  test.match(await readMachine(paths), { level, init: Object }, 'the file is replaced')
  test.same(findProcesses(), [], 'the processes of the previous start are terminated')
  await next.stop(spec.boxId)
  await provider.start({ ...spec, agentToken: 'bxt_third' })
  await waitUntil('the processes run again', () => findProcesses().length === 2)

  await writeFile(paths.machine, '')
  await next.destroy(spec.boxId)
  test.same(findProcesses(), [])
  test.notOk(existsSync(paths.dir))
  for (const dir of cgroups) test.notOk(existsSync(dir), `${dir} is removed`)
  await next.destroy(otherSpec.boxId)
})

testEachLevel('deletes a running box whose directory was removed', async (test, level) => {
  const { provider, spec, paths, findProcesses, cgroups } = await startBoxWithProcesses(test, level)
  await rm(paths.dir, { recursive: true })
  test.equal(await provider.inspect(spec.boxId), 'absent')
  await provider.destroy(spec.boxId)
  test.same(findProcesses(), [])
  for (const dir of cgroups) test.notOk(existsSync(dir), `${dir} is removed`)
})
