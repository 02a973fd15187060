// A coordinator that dies at any moment leaves a box that the next one finds, stops and removes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { boxPaths, readMachine } from '../../../../coordinator/lifecycle/providers/local/machine-file.ts'
import { isAlive } from '../../../../coordinator/lifecycle/providers/local/proc.ts'
import { pidsWithArgument, uniqueSeconds } from './processes.ts'
import { ALL_LEVELS, eachLevel, makeDataDir, newSpec, openProvider, startBox, until } from './support.ts'

const STARTER = new URL('fixtures/start-and-wait.ts', import.meta.url).pathname

eachLevel(ALL_LEVELS, async (test, level) => {
  const dataDir = await makeDataDir(test)
  const sleeper = uniqueSeconds()
  const spec = newSpec()
  const child = spawn(process.execPath, [STARTER, dataDir, level, spec.boxId, sleeper], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const next = await openProvider(dataDir, { level })
  test.teardown(() => next.destroy(spec.boxId))
  test.equal(await next.inspect(spec.boxId), 'running', 'kill -9 of the coordinator ends no box')
  await until(() => pidsWithArgument(sleeper).length === 1, 'its processes run')

  const paths = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  const machine = JSON.parse(await readFile(paths.machine, 'utf8')) as object
  await writeFile(paths.machine, JSON.stringify({ ...machine, init: null }))
  test.equal(await next.inspect(spec.boxId), 'running', 'found though its start was never written down')
  await next.start(spec)
  const init = (await readMachine(paths))?.init
  test.ok(init && isAlive(init), 'taken over by the next start, not started a second time')
  test.equal(pidsWithArgument(sleeper).length, 1)
  await next.stop(spec.boxId)
  test.same(pidsWithArgument(sleeper), [])
})

t.test('a pid that another process has now is not signalled', async (test) => {
  const { provider, spec, paths } = await startBox(test, { level: 'process' })
  await provider.stop(spec.boxId)
  const stranger = spawn('sleep', ['600'])
  await once(stranger, 'spawn')
  test.teardown(() => stranger.kill('SIGKILL'))
  const machine = JSON.parse(await readFile(paths.machine, 'utf8')) as object
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const init = { pid: stranger.pid, startTicks: 1, bootId }
  await writeFile(paths.machine, JSON.stringify({ ...machine, init }))
  test.equal(await provider.inspect(spec.boxId), 'stopped')
  await provider.stop(spec.boxId)
  test.same([stranger.exitCode, stranger.signalCode], [null, null])
})
