// When its time is up, or its caller is gone, a command ends with everything it started.
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
import { execApp, isAlive, pidIn, startedUnder, waitUntil } from './exec-app.ts'

// Most of these wait for a limit of a second.
t.jobs = 4

t.test('the limit ends it, and what it had printed is told', async (t) => {
  const { exec } = execApp(t)
  t.match(await exec('echo before; exec sleep 600', { timeoutSeconds: 1 }), {
    timedOut: true,
    exitCode: null,
    signal: 'TERM',
    stdout: 'before\n',
  })
})

t.test('a command that tidies up on TERM keeps its exit code', async (t) => {
  const { exec } = execApp(t)
  const result = await exec(`trap 'echo tidy; exit 5' TERM; sleep 600 & wait`, { timeoutSeconds: 1 })
  t.match(result, { timedOut: true, exitCode: 5, signal: null, stdout: 'tidy\n' })
})

t.test('one that ignores TERM is killed', async (t) => {
  const { exec, home } = execApp(t)
  const result = await exec(`trap '' TERM; echo $$ >pid; while :; do sleep 600; done`, { timeoutSeconds: 1 })
  t.match(result, { timedOut: true, exitCode: null, signal: 'KILL' })
  t.equal(isAlive(await pidIn(home, 'pid')), false)
})

t.test('so is one that is stopped', async (t) => {
  const { exec } = execApp(t)
  t.match(await exec('kill -STOP $$', { timeoutSeconds: 1 }), { timedOut: true, signal: 'TERM' })
})

t.test('children go with it, wherever they went', async (t) => {
  const { exec, home } = execApp(t)
  const result = await exec(
    [
      `sh -c 'echo $$ >child; exec sleep 600' &`,
      // A session of its own, and its parent gone: only the mark in its environment is left.
      `(setsid sh -c 'echo $$ >orphan; exec sleep 600' &)`,
      // A session of its own and an environment without the mark: only its parent is left.
      `env -i /usr/bin/setsid /bin/sh -c 'echo $$ >stripped; exec sleep 600' &`,
      // Deaf to TERM, in a session of its own.
      `setsid sh -c 'trap "" TERM; echo $$ >deaf; while :; do sleep 600; done' &`,
      'wait',
    ].join('\n'),
    { timeoutSeconds: 2 },
  )
  t.equal(result.timedOut, true)
  for (const name of ['child', 'orphan', 'stripped', 'deaf']) {
    t.equal(isAlive(await pidIn(home, name)), false, name)
  }
})

t.test('one that always starts another cannot run away', async (t) => {
  const { exec, home } = execApp(t)
  const again = `echo 'sleep 0.02; setsid sh ./again & exit 0' >again`
  await exec(`${again}; trap '' TERM; sh ./again; while :; do sleep 600; done`, { timeoutSeconds: 1 })
  t.same(startedUnder(home), [])
})

t.test('the background of a command that ended by itself is left alone', async (t) => {
  const { exec, home } = execApp(t)
  await exec(`sh -c 'echo $$ >pid; exec sleep 600' >/dev/null 2>&1 & while [ ! -s pid ]; do :; done`, {
    timeoutSeconds: 5,
  })
  const pid = await pidIn(home, 'pid')
  t.equal(isAlive(pid), true)
  process.kill(pid, 'SIGKILL')
})

const TWO_SLEEPERS = {
  command: `echo $$ >shell; sh -c 'echo $$ >child; sleep 600; touch wrong'`,
  timeoutSeconds: 600,
}

t.test('a caller that hangs up ends the command', async (t) => {
  const { app, home } = execApp(t)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const call = request({
    port,
    path: '/exec',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })
  const hungUp = once(call, 'error')
  call.end(JSON.stringify(TWO_SLEEPERS))
  const pids = [await pidIn(home, 'shell'), await pidIn(home, 'child')]
  call.destroy(new Error('the caller hangs up'))
  t.match(await hungUp, [Error])
  await waitUntil('both are gone', () => !pids.some(isAlive))
  t.equal(existsSync(join(home, 'wrong')), false)
})

t.test('so does one that resets its stream, and the tunnel stays as it was', async (t) => {
  const { deps, home } = execApp(t)
  const log = pino({ level: 'silent' })
  const app = buildAgentApp({ log, routes: [(scope) => execRoutes(scope, deps)] })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  t.teardown(async () => {
    session.destroy()
    await app.close()
  })
  const post = (body: object) => {
    const call = session.request({ ':method': 'POST', ':path': '/exec', 'content-type': 'application/json' })
    call.end(JSON.stringify(body))
    return call
  }
  const call = post(TWO_SLEEPERS)
  const pids = [await pidIn(home, 'shell'), await pidIn(home, 'child')]
  call.close(constants.NGHTTP2_CANCEL)
  await waitUntil('both are gone', () => !pids.some(isAlive))
  t.match(JSON.parse(await text(post({ command: 'echo next' }))), { stdout: 'next\n' })
})

t.test('an agent that stops ends what runs', async (t) => {
  const { app, exec, home } = execApp(t)
  const answer = exec('echo $$ >pid; exec sleep 600', { timeoutSeconds: 600 })
  const pid = await pidIn(home, 'pid')
  await app.close()
  t.match(await answer, { signal: 'TERM', timedOut: false })
  t.equal(isAlive(pid), false)
})
