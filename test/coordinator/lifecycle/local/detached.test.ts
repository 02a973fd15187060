// A detached command in a real box: it outlives its agent at every level, and nothing of it outlives the box.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:http2'
import { createConnection } from 'node:net'
import { text } from 'node:stream/consumers'
import { argvOf, listPids, readStat } from '../../../../coordinator/lifecycle/providers/local/proc.ts'
import { pidsWithArgument, uniqueSeconds } from './processes.ts'
import { ALL_LEVELS, eachLevel, projectRoot, startBox, until } from './support.ts'

/** Asks the agent over its own socket; null while it does not answer. */
async function ask(socket: string, method: string, path: string, body?: object) {
  const session = connect('http://box', { createConnection: () => createConnection(socket) })
  session.on('error', () => session.destroy())
  try {
    const stream = session.request({ ':method': method, ':path': path, 'content-type': 'application/json' })
    stream.on('error', () => undefined)
    stream.end(body && JSON.stringify(body))
    const gone = once(stream, 'close').then(() => null)
    if ((await Promise.race([once(stream, 'response'), gone])) === null) return null
    return JSON.parse(await text(stream))
  } catch {
    return null
  } finally {
    session.destroy()
  }
}

/** Named by their folder. */
const runners = (processId: string) =>
  listPids().filter(
    (pid) => readStat(pid) !== null && argvOf(pid).some((one) => one.endsWith(`/${processId}`)),
  )

eachLevel(ALL_LEVELS, async (test, level) => {
  const seconds = uniqueSeconds()
  // What the provider itself would run, with a socket to ask it over.
  const agentCommand =
    level === 'process'
      ? [process.execPath, `${projectRoot}agent/main.ts`]
      : ['/run/boxwood/bin/node', '/run/boxwood/agent/agent.mjs']
  const { provider, spec, inHome } = await startBox(test, {
    level,
    graceMs: 2000,
    agentCommand: ['sh', '-c', 'BOXWOOD_SOCKET=$HOME/app.sock exec "$@"', 'sh', ...agentCommand],
  })
  const socket = inHome('app.sock')
  const list = async () => (await ask(socket, 'GET', '/exec'))?.processes
  await until(async () => (await list()) !== undefined, 'the agent answers')
  const processId = `p_${randomBytes(12).toString('hex')}`
  const command = `setsid sleep ${seconds} & wait`
  const started = await ask(socket, 'POST', '/exec', { command, detached: true, processId })
  test.match(started, { type: 'exec.started', processId })
  await until(() => pidsWithArgument(seconds).length === 1, 'it runs')
  const pids = pidsWithArgument(seconds)
  test.equal(runners(processId).length, 1)

  const again = await ask(socket, 'POST', '/exec', { command: 'kill -KILL $PPID' })
  test.equal(again, null, 'the agent is dead')
  await until(async () => (await list()) !== undefined, 'the next agent answers')
  test.match(await list(), [{ processId, running: true, lost: false }])
  test.same(pidsWithArgument(seconds), pids, 'the same process runs on')

  await provider.stop(spec.boxId)
  test.same(pidsWithArgument(seconds), [], 'it ended with the box')
  test.same(runners(processId), [], 'and so did its runner')
  test.ok(existsSync(inHome('.')))

  await provider.start(spec)
  await until(async () => (await list()) !== undefined, 'the agent answers again')
  const [ended] = (await list()) ?? []
  test.match(ended, { processId, running: false })
  test.ok(ended.lost || ended.signal === 'TERM', 'its end is told as it was, or not known')
})
