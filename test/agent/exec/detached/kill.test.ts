// DELETE and the time limit terminate a detached process with its process tree.
import t from 'tap'
import { newId } from '../../../../shared/ids.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { findPidsByHome, isAlive, waitForPid } from '../support.ts'
import { createAgent, isNativeRunner } from './support.ts'

// Most tests wait for a grace period of seconds.
t.jobs = 4

t.test('terminates a process with TERM', async (t) => {
  const { start, kill, getStatus } = await createAgent(t)
  const { processId, pid } = await start('echo before; exec sleep 600')
  await waitUntil('the command has written', async () => (await getStatus(processId)).stdout === 'before\n')
  t.match(await kill(processId), {
    ok: true,
    type: 'exec.killed',
    processId,
    wasRunning: true,
    signal: 'TERM',
  })
  t.equal(isAlive(pid), false)
  t.match(await getStatus(processId), {
    running: false,
    lost: false,
    exitCode: null,
    signal: 'TERM',
    stdout: 'before\n',
  })
})

t.test('concurrent and repeated DELETE requests are idempotent', async (t) => {
  const { start, kill } = await createAgent(t)
  const { processId } = await start('exec sleep 600')
  const both = await Promise.all([kill(processId), kill(processId)])
  t.match(both, [
    { wasRunning: true, signal: 'TERM' },
    { wasRunning: true, signal: 'TERM' },
  ])
  t.match(await kill(processId), { wasRunning: false, signal: null })
})

t.test('terminates a process whose start is in progress', async (t) => {
  const { processes } = await createAgent(t)
  const processId = newId('process')
  const started = processes.start({ command: 'exec sleep 600', detached: true, processId })
  t.match(await processes.kill(processId), { wasRunning: true, signal: 'TERM' })
  t.match((await started).exit, { status: 'killed' })
})

t.test('reports wasRunning false for a process that exited by itself', async (t) => {
  const { start, kill, waitForExit, getStatus } = await createAgent(t)
  const { processId } = await start('exit 3')
  await waitForExit(processId)
  t.match(await kill(processId), { wasRunning: false, signal: null })
  t.match(await getStatus(processId), { exitCode: 3, signal: null })
})

t.test('kills a process that ignores TERM', async (t) => {
  const { start, kill, getProcess, home } = await createAgent(t)
  const { processId } = await start(`trap '' TERM; echo $$ >pid; while :; do sleep 600; done`)
  await waitForPid(home, 'pid')
  t.match(await kill(processId), { wasRunning: true, signal: 'KILL' })
  t.match(getProcess(processId).exit, { status: 'killed', exitCode: null, signal: 'KILL' })
})

t.test('a process that handles TERM keeps its exit code and has status killed', async (t) => {
  const { start, kill, getProcess, home } = await createAgent(t)
  // The child writes the file after its execve: a TERM between fork and execve would be lost to the inherited handler.
  const child = `sh -c 'echo $$ >pid; exec sleep 600'`
  const { processId } = await start(`trap 'echo cleanup; exit 5' TERM; ${child} & wait`)
  await waitForPid(home, 'pid')
  t.match(await kill(processId), { wasRunning: true, signal: 'TERM' })
  t.match(getProcess(processId).exit, { status: 'killed', exitCode: 5, signal: null })
})

t.test('terminates all descendants, also in sessions of their own', async (t) => {
  const { start, kill, home } = await createAgent(t)
  const names = ['child', 'orphan', 'stripped', 'ignoring']
  const lines = [
    `sh -c 'echo $$ >child; exec sleep 600' &`,
    `(setsid sh -c 'echo $$ >orphan; exec sleep 600' &)`,
    `env -i /usr/bin/setsid /bin/sh -c 'echo $$ >stripped; exec sleep 600' &`,
    `setsid sh -c 'trap "" TERM; echo $$ >ignoring; while :; do sleep 600; done' &`,
  ]
  if (isNativeRunner) {
    // Orphaned, with an empty environment, its own session and its own output: found as a child of the subreaper.
    lines.push(`(env -i /usr/bin/setsid /bin/sh -c 'echo $$ >isolated; exec sleep 600 >/dev/null 2>&1' &)`)
    names.push('isolated')
  }
  const { processId } = await start([...lines, 'wait; sleep 600'].join('\n'))
  const pids = await Promise.all(names.map((name) => waitForPid(home, name)))
  t.match(await kill(processId), { wasRunning: true, signal: 'KILL' })
  t.same(pids.filter(isAlive), [])
})

t.test('terminates background processes of a command that has exited', async (t) => {
  const { start, kill, waitForExit, getProcess, home } = await createAgent(t)
  const { processId } = await start(
    `setsid sh -c 'echo $$ >pid; exec sleep 600' & while [ ! -s pid ]; do :; done`,
  )
  const pid = await waitForPid(home, 'pid')
  const exit = await waitForExit(processId)
  t.match(exit, { status: 'exited', exitCode: 0 })
  t.equal(isAlive(pid), true, 'it runs until the request')
  t.match(await kill(processId), { wasRunning: false, signal: null })
  t.equal(isAlive(pid), false)
  t.equal(getProcess(processId).exit, exit)
  await waitUntil('the runner has exited', () => findPidsByHome(home).length === 0)
})

t.test('records a TERM sent to the process group from outside the agent', async (t) => {
  const { start, waitForExit } = await createAgent(t)
  const { processId, pid } = await start('sleep 600; exit 3')
  process.kill(-pid, 'SIGTERM')
  t.match(
    await waitForExit(processId),
    isNativeRunner ? { status: 'killed', signal: 'TERM' } : { exitCode: 143, signal: null },
  )
})

t.test('terminates a process at its time limit', async (t) => {
  const { start, waitForExit, getStatus } = await createAgent(t)
  const { processId } = await start('exec sleep 600', { timeoutSeconds: 1 })
  t.match(await waitForExit(processId), { status: 'timed_out', exitCode: null, signal: 'TERM' })
  t.match(await getStatus(processId), { running: false, signal: 'TERM', timedOut: true })
})

t.test('a process that exits before its time limit has status exited', async (t) => {
  const { start, waitForExit } = await createAgent(t)
  const { processId } = await start('exit 124', { timeoutSeconds: 600 })
  t.match(await waitForExit(processId), { status: 'exited', exitCode: 124, signal: null })
})
