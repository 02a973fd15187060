// A synchronous command is terminated with its process tree at its time limit or when its client disconnects.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../../support/wait-until.ts'
import { createExecApp, findPidsByHome, isAlive, waitForPid } from './support.ts'

// Most tests wait for a time limit of one second.
t.jobs = 4

t.test('terminates a command at its time limit and returns its output', async (t) => {
  const { exec } = createExecApp(t)
  t.match(await exec('echo before; exec sleep 600', { timeoutSeconds: 1 }), {
    timedOut: true,
    exitCode: null,
    signal: 'TERM',
    stdout: 'before\n',
  })
})

t.test('a command that handles TERM keeps its exit code', async (t) => {
  const { exec } = createExecApp(t)
  const result = await exec(`trap 'echo cleanup; exit 5' TERM; sleep 600 & wait`, { timeoutSeconds: 1 })
  t.match(result, { timedOut: true, exitCode: 5, signal: null, stdout: 'cleanup\n' })
})

t.test('kills a command that ignores TERM', async (t) => {
  const { exec, home } = createExecApp(t)
  const result = await exec(`trap '' TERM; echo $$ >pid; while :; do sleep 600; done`, { timeoutSeconds: 1 })
  t.match(result, { timedOut: true, exitCode: null, signal: 'KILL' })
  t.equal(isAlive(await waitForPid(home, 'pid')), false)
})

t.test('terminates a command that is stopped by SIGSTOP', async (t) => {
  const { exec } = createExecApp(t)
  t.match(await exec('kill -STOP $$', { timeoutSeconds: 1 }), { timedOut: true, signal: 'TERM' })
})

t.test('terminates all descendants, also in sessions of their own', async (t) => {
  const { exec, home } = createExecApp(t)
  const result = await exec(
    [
      `sh -c 'echo $$ >child; exec sleep 600' &`,
      // In its own session, and orphaned: found by its environment variable.
      `(setsid sh -c 'echo $$ >orphan; exec sleep 600' &)`,
      // In its own session, with an empty environment: found by its parent.
      `env -i /usr/bin/setsid /bin/sh -c 'echo $$ >stripped; exec sleep 600' &`,
      // In its own session, ignores TERM.
      `setsid sh -c 'trap "" TERM; echo $$ >ignoring; while :; do sleep 600; done' &`,
      'wait',
    ].join('\n'),
    { timeoutSeconds: 2 },
  )
  t.equal(result.timedOut, true)
  for (const name of ['child', 'orphan', 'stripped', 'ignoring']) {
    t.equal(isAlive(await waitForPid(home, name)), false, name)
  }
})

t.test('terminates a process that continuously forks and exits', async (t) => {
  const { exec, home } = createExecApp(t)
  const writeScript = `echo 'sleep 0.02; setsid sh ./refork & exit 0' >refork`
  await exec(`${writeScript}; trap '' TERM; sh ./refork; while :; do sleep 600; done`, { timeoutSeconds: 1 })
  t.same(findPidsByHome(home), [])
})

t.test('background processes of a command that exited keep running', async (t) => {
  const { exec, home } = createExecApp(t)
  await exec(`sh -c 'echo $$ >pid; exec sleep 600' >/dev/null 2>&1 & while [ ! -s pid ]; do :; done`, {
    timeoutSeconds: 5,
  })
  const pid = await waitForPid(home, 'pid')
  t.equal(isAlive(pid), true)
  process.kill(pid, 'SIGKILL')
})

const SHELL_AND_CHILD = {
  command: `echo $$ >shell; sh -c 'echo $$ >child; sleep 600; touch wrong'`,
  timeoutSeconds: 600,
}

t.test('terminates the command when the request is cancelled', async (t) => {
  const { post, exec, home } = createExecApp(t)
  const controller = new AbortController()
  const response = post(SHELL_AND_CHILD, controller.signal)
  const pids = [await waitForPid(home, 'shell'), await waitForPid(home, 'child')]
  controller.abort()
  await waitUntil('both processes have exited', () => !pids.some(isAlive))
  await response
  t.equal(existsSync(join(home, 'wrong')), false)
  t.match(await exec('echo next'), { stdout: 'next\n' })
})

t.test('terminates running commands when the agent stops', async (t) => {
  const { close, exec, home } = createExecApp(t)
  const result = exec('echo $$ >pid; exec sleep 600', { timeoutSeconds: 600 })
  const pid = await waitForPid(home, 'pid')
  await close()
  t.match(await result, { signal: 'TERM', timedOut: false })
  t.equal(isAlive(pid), false)
})
