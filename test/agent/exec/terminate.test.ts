// A synchronous command is terminated with its process tree at its time limit or when its client disconnects.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { connect, constants } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import t from 'tap'
import { buildAgentApp } from '../../../agent/app.ts'
import { execRoutes } from '../../../agent/exec/routes.ts'
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

t.test('terminates the command when the client disconnects', async (t) => {
  const { app, home } = createExecApp(t)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const clientRequest = request({
    port,
    path: '/exec',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })
  const failed = once(clientRequest, 'error')
  clientRequest.end(JSON.stringify(SHELL_AND_CHILD))
  const pids = [await waitForPid(home, 'shell'), await waitForPid(home, 'child')]
  clientRequest.destroy(new Error('the client disconnects'))
  t.match(await failed, [Error])
  await waitUntil('both processes have exited', () => !pids.some(isAlive))
  t.equal(existsSync(join(home, 'wrong')), false)
})

t.test('terminates the command when its HTTP/2 stream is reset, and keeps the session open', async (t) => {
  const { deps, home } = createExecApp(t)
  const log = pino({ level: 'silent' })
  const app = buildAgentApp({ log, routes: [(scope) => execRoutes(scope, deps)] })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  t.teardown(async () => {
    session.destroy()
    await app.close()
  })
  const post = (body: object) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/exec',
      'content-type': 'application/json',
    })
    stream.end(JSON.stringify(body))
    return stream
  }
  const stream = post(SHELL_AND_CHILD)
  const pids = [await waitForPid(home, 'shell'), await waitForPid(home, 'child')]
  stream.close(constants.NGHTTP2_CANCEL)
  await waitUntil('both processes have exited', () => !pids.some(isAlive))
  t.match(JSON.parse(await text(post({ command: 'echo next' }))), { stdout: 'next\n' })
})

t.test('terminates running commands when the agent stops', async (t) => {
  const { app, exec, home } = createExecApp(t)
  const result = exec('echo $$ >pid; exec sleep 600', { timeoutSeconds: 600 })
  const pid = await waitForPid(home, 'pid')
  await app.close()
  t.match(await result, { signal: 'TERM', timedOut: false })
  t.equal(isAlive(pid), false)
})
