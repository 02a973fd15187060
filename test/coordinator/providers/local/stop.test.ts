// Stopping a local box terminates all its processes. Stop and start can be repeated.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { startBox } from './support.ts'

testEachLevel('terminates every process of a stopped box and can be repeated', async (test, level) => {
  const otherSessionSeconds = uniqueSleepSeconds()
  const ignoresTermSeconds = uniqueSleepSeconds()
  const script = `(setsid sh -c 'sleep ${otherSessionSeconds} & exit' &)
(trap '' TERM; sleep ${ignoresTermSeconds}) &
trap 'echo TERM >>"$HOME/signals"; exit' TERM
: >"$HOME/ready"
while :; do sleep 0.05; done`
  const { provider, spec, inHome } = await startBox(test, { level, script })
  await waitUntil('the agent runs', () => existsSync(inHome('ready')))
  await waitUntil(
    'the process in another session runs',
    () => findSleepPids(otherSessionSeconds).length === 1,
  )
  await provider.stop(spec.boxId)
  test.same(findSleepPids(otherSessionSeconds), [], 'a process in another session is terminated')
  test.same(findSleepPids(ignoresTermSeconds), [], 'a process that ignores SIGTERM is killed')
  test.equal(
    await readFile(inHome('signals'), 'utf8'),
    'TERM\n',
    'the agent gets SIGTERM once and can exit by itself',
  )
  test.equal(await provider.inspect(spec.boxId), 'stopped')
  await provider.stop(spec.boxId)

  await provider.start(spec)
  const repeated = await provider.start(spec)
  test.equal(repeated.isolation?.level, level)
  test.equal(await provider.inspect(spec.boxId), 'running')
  await waitUntil('the restarted agent runs', () => findSleepPids(ignoresTermSeconds).length > 0)
  test.equal(findSleepPids(ignoresTermSeconds).length, 1, 'a repeated start does not start a second agent')
})

testEachLevel(
  'a TERM to the init, which a process of the box sends, does not stop the box',
  async (test, level) => {
    const seconds = uniqueSleepSeconds()
    const script = `kill -TERM 1; kill -KILL 1
: >"$HOME/sent"
exec sleep ${seconds}`
    const { provider, spec, inHome } = await startBox(test, { level, script })
    await waitUntil(
      'the signals were sent',
      () => existsSync(inHome('sent')) && findSleepPids(seconds).length === 1,
    )
    test.equal(await provider.inspect(spec.boxId), 'running')
    await provider.stop(spec.boxId)
    test.same(findSleepPids(seconds), [])
    test.equal(await provider.inspect(spec.boxId), 'stopped')
  },
  // The init of a box at the level process is not pid 1.
  ['bubblewrap', 'namespaces'],
)
