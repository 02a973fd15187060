// Freezing a local box: its processes keep their memory and continue where they were.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { probeCgroups } from '../../../../coordinator/providers/local/cgroups.ts'
import type { Level } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { openProvider, startBox } from './support.ts'

const { canFreeze } = await probeCgroups()

/** Longer than the interval of the counter below. */
const OBSERVE_MS = 150
const COUNT = `i=0
while :; do
  i=$((i+1))
  echo $i >"$HOME/count.new"
  mv "$HOME/count.new" "$HOME/count"
  sleep 0.02
done`

function testFreeze(
  name: string,
  body: (test: Test, level: Level) => Promise<void>,
  levels?: readonly Level[],
): void {
  if (canFreeze) testEachLevel(name, body, levels)
  else t.test(name, { skip: 'this user has no cgroup freezer' }, async () => {})
}

async function startCounter(test: Test, level: Level, script = '') {
  const box = await startBox(test, { level, script: `${script}\n(${COUNT}) &` })
  const readCount = () => Number(readFileSync(box.inHome('count'), 'utf8'))
  await waitUntil('the counter runs', () => existsSync(box.inHome('count')))
  return { ...box, readCount }
}

testFreeze('a frozen box continues where it was frozen, with a new token', async (test, level) => {
  const box = await startCounter(test, level)
  const { provider, spec, readCount, dataDir, paths } = box
  test.equal(await provider.freeze(spec.boxId), true)
  test.equal(await provider.inspect(spec.boxId), 'frozen')
  const frozenAt = readCount()
  await sleep(OBSERVE_MS)
  test.equal(readCount(), frozenAt, 'no process runs')
  test.equal(await provider.freeze(spec.boxId), true, 'a repeated freeze has no effect')

  const restarted = await openProvider(dataDir, { level })
  test.teardown(() => restarted.close())
  test.equal(await restarted.inspect(spec.boxId), 'frozen', 'after a restart of the coordinator')
  await restarted.start({ ...spec, agentToken: 'bxt_new' })
  test.equal(await restarted.inspect(spec.boxId), 'running')
  test.equal(readFileSync(join(paths.state, 'token'), 'utf8'), 'bxt_new')
  await waitUntil('the counter continues', () => readCount() > frozenAt)
  const { cgroups } = JSON.parse(readFileSync(paths.machine, 'utf8')) as { cgroups: string[] }
  await provider.destroy(spec.boxId)
  test.same(cgroups.filter(existsSync), [], 'the cgroups of the box are removed with it')
})

testFreeze(
  'the processes of a frozen box can exit by themselves when it is stopped',
  async (test, level) => {
    const ignoresTermSeconds = uniqueSleepSeconds()
    const { provider, spec, inHome, readCount } = await startCounter(
      test,
      level,
      `(trap '' TERM; sleep ${ignoresTermSeconds}) &
(trap 'echo TERM >>"$HOME/signals"; exit' TERM; while :; do sleep 0.02; done) &`,
    )
    await waitUntil('the processes run', () => findSleepPids(ignoresTermSeconds).length === 1)
    test.equal(await provider.freeze(spec.boxId), true)
    await provider.stop(spec.boxId)
    test.equal(await provider.inspect(spec.boxId), 'stopped')
    test.equal(readFileSync(inHome('signals'), 'utf8'), 'TERM\n')
    test.same(findSleepPids(ignoresTermSeconds), [], 'a process that ignores SIGTERM is killed')
    test.equal(await provider.freeze(spec.boxId), false, 'a stopped box cannot be frozen')

    const stoppedAt = readCount()
    await provider.start(spec)
    test.equal(await provider.inspect(spec.boxId), 'running', 'a box that was frozen can be started again')
    await waitUntil('the counter starts again', () => readCount() !== stoppedAt)
  },
  ['bubblewrap', 'process'],
)

testFreeze(
  'a frozen box can be deleted',
  async (test, level) => {
    const seconds = uniqueSleepSeconds()
    const { provider, spec, paths } = await startCounter(test, level, `sleep ${seconds} &`)
    await waitUntil('the process runs', () => findSleepPids(seconds).length === 1)
    test.equal(await provider.freeze(spec.boxId), true)
    await provider.destroy(spec.boxId)
    test.same(findSleepPids(seconds), [])
    test.notOk(existsSync(paths.dir))
    test.equal(await provider.inspect(spec.boxId), 'absent')
  },
  ['process'],
)

t.test('a box without a freezer keeps running', async (test) => {
  const { provider, spec, readCount, paths } = await startCounter(test, 'process')
  const file = readFileSync(paths.machine, 'utf8')
  writeFileSync(paths.machine, JSON.stringify({ ...JSON.parse(file), cgroups: [] }))
  test.equal(await provider.freeze(spec.boxId), false)
  test.equal(await provider.inspect(spec.boxId), 'running')
  const count = readCount()
  await waitUntil('the counter continues', () => readCount() > count)
  writeFileSync(paths.machine, file)
})
