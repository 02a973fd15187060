// DELETE ends a detached command with everything it started, and its time limit does the same.
import t from 'tap'
import { newId } from '../../../../shared/ids.ts'
import { isAlive, pidIn, startedUnder, waitUntil } from '../exec-app.ts'
import { agent, isNative } from './support.ts'

// Most of these wait for a grace of seconds.
t.jobs = 4

t.test('TERM is enough for most', async (t) => {
  const { start, kill, status } = await agent(t)
  const { processId, pid } = await start('echo before; exec sleep 600')
  t.match(await kill(processId), {
    ok: true,
    type: 'exec.killed',
    processId,
    wasRunning: true,
    signal: 'TERM',
  })
  t.equal(isAlive(pid), false)
  t.match(await status(processId), {
    running: false,
    lost: false,
    exitCode: null,
    signal: 'TERM',
    stdout: 'before\n',
  })
})

t.test('again, and twice at once, changes nothing', async (t) => {
  const { start, kill } = await agent(t)
  const { processId } = await start('exec sleep 600')
  const both = await Promise.all([kill(processId), kill(processId)])
  t.match(both, [
    { wasRunning: true, signal: 'TERM' },
    { wasRunning: true, signal: 'TERM' },
  ])
  t.match(await kill(processId), { wasRunning: false, signal: null })
})

t.test('one that is only just being started', async (t) => {
  const { processes } = await agent(t)
  const processId = newId('process')
  const started = processes.start({ command: 'exec sleep 600', detached: true, processId })
  t.match(await processes.kill(processId), { wasRunning: true, signal: 'TERM' })
  t.match((await started).exit, { status: 'killed' })
})

t.test('one that ended by itself was not running', async (t) => {
  const { start, kill, ended, status } = await agent(t)
  const { processId } = await start('exit 3')
  await ended(processId)
  t.match(await kill(processId), { wasRunning: false, signal: null })
  t.match(await status(processId), { exitCode: 3, signal: null })
})

t.test('one that ignores TERM is killed', async (t) => {
  const { start, kill, get, home } = await agent(t)
  const { processId } = await start(`trap '' TERM; echo $$ >pid; while :; do sleep 600; done`)
  await pidIn(home, 'pid')
  t.match(await kill(processId), { wasRunning: true, signal: 'KILL' })
  t.match(get(processId).exit, { status: 'killed', exitCode: null, signal: 'KILL' })
})

t.test('one that tidies up keeps its exit code, and was killed all the same', async (t) => {
  const { start, kill, get, home } = await agent(t)
  const { processId } = await start(`trap 'echo tidy; exit 5' TERM; sleep 600 & echo $$ >pid; wait`)
  await pidIn(home, 'pid')
  t.match(await kill(processId), { wasRunning: true, signal: 'TERM' })
  t.match(get(processId).exit, { status: 'killed', exitCode: 5, signal: null })
})

t.test('children go with it, wherever they went', async (t) => {
  const { start, kill, home } = await agent(t)
  const names = ['child', 'orphan', 'stripped', 'deaf']
  const lines = [
    `sh -c 'echo $$ >child; exec sleep 600' &`,
    `(setsid sh -c 'echo $$ >orphan; exec sleep 600' &)`,
    `env -i /usr/bin/setsid /bin/sh -c 'echo $$ >stripped; exec sleep 600' &`,
    `setsid sh -c 'trap "" TERM; echo $$ >deaf; while :; do sleep 600; done' &`,
  ]
  if (isNative) {
    // Its parent gone, its environment cleaned, its session and its output its own: only its keeper knows it.
    lines.push(`(env -i /usr/bin/setsid /bin/sh -c 'echo $$ >lone; exec sleep 600 >/dev/null 2>&1' &)`)
    names.push('lone')
  }
  const { processId } = await start([...lines, 'wait; sleep 600'].join('\n'))
  const pids = await Promise.all(names.map((name) => pidIn(home, name)))
  t.match(await kill(processId), { wasRunning: true, signal: 'KILL' })
  t.same(pids.filter(isAlive), [])
})

t.test('what an ended command left behind is ended too, when asked', async (t) => {
  const { start, kill, ended, get, home } = await agent(t)
  const { processId } = await start(
    `setsid sh -c 'echo $$ >pid; exec sleep 600' & while [ ! -s pid ]; do :; done`,
  )
  const pid = await pidIn(home, 'pid')
  const end = await ended(processId)
  t.match(end, { status: 'exited', exitCode: 0 })
  t.equal(isAlive(pid), true, 'it is left alone until then')
  t.match(await kill(processId), { wasRunning: false, signal: null })
  t.equal(isAlive(pid), false)
  t.equal(get(processId).exit, end)
  await waitUntil('its runner is gone too', () => startedUnder(home).length === 0)
})

t.test('TERM to all of its group, by hand, is recorded', async (t) => {
  const { start, ended } = await agent(t)
  const { processId, pid } = await start('sleep 600; exit 3')
  process.kill(-pid, 'SIGTERM')
  t.match(
    await ended(processId),
    isNative ? { status: 'killed', signal: 'TERM' } : { exitCode: 143, signal: null },
  )
})

t.test('the time limit ends it', async (t) => {
  const { start, ended, status } = await agent(t)
  const { processId } = await start('exec sleep 600', { timeoutSeconds: 1 })
  t.match(await ended(processId), { status: 'timed_out', exitCode: null, signal: 'TERM' })
  t.match(await status(processId), { running: false, signal: 'TERM' })
})

t.test('one that ends in time has none', async (t) => {
  const { start, ended } = await agent(t)
  const { processId } = await start('exit 124', { timeoutSeconds: 600 })
  t.match(await ended(processId), { status: 'exited', exitCode: 124, signal: null })
})
