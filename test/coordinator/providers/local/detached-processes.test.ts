// Detached processes in a local box with the real agent survive the agent and are terminated with the box.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:http2'
import { createConnection } from 'node:net'
import { text } from 'node:stream/consumers'
import { listPids, readArgv, readStat } from '../../../../coordinator/providers/parts/proc.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { projectRoot, startBox } from './support.ts'

/** Sends a request to the agent over its own socket. Returns null while the agent does not respond. */
async function sendRequest(socket: string, method: string, path: string, body?: object) {
  const session = connect('http://box', { createConnection: () => createConnection(socket) })
  session.on('error', () => session.destroy())
  try {
    const stream = session.request({ ':method': method, ':path': path, 'content-type': 'application/json' })
    stream.on('error', () => undefined)
    stream.end(body && JSON.stringify(body))
    const closed = once(stream, 'close').then(() => null)
    if ((await Promise.race([once(stream, 'response'), closed])) === null) return null
    return JSON.parse(await text(stream))
  } catch {
    return null
  } finally {
    session.destroy()
  }
}

/** An argument of the runner is the process directory, which is named after the process id. */
const findRunners = (processId: string) =>
  listPids().filter(
    (pid) => readStat(pid) !== null && readArgv(pid).some((argument) => argument.endsWith(`/${processId}`)),
  )

testEachLevel('runs a detached process until the box stops, also without its agent', async (test, level) => {
  const seconds = uniqueSleepSeconds()
  // The agent as the provider runs it. BOXWOOD_SOCKET makes it listen on a socket for this test.
  const agentCommand =
    level === 'process'
      ? [process.execPath, `${projectRoot}agent/main.ts`]
      : ['/run/boxwood/bin/node', '/run/boxwood/agent/current/agent.mjs']
  const { provider, spec, inHome } = await startBox(test, {
    level,
    graceMs: 2000,
    agentCommand: ['sh', '-c', 'BOXWOOD_SOCKET=$HOME/app.sock exec "$@"', 'sh', ...agentCommand],
  })
  const socket = inHome('app.sock')
  const listProcesses = async () => (await sendRequest(socket, 'GET', '/exec'))?.processes
  await waitUntil('the agent responds', async () => (await listProcesses()) !== undefined)
  const processId = `p_${randomBytes(12).toString('hex')}`
  const command = `setsid sleep ${seconds} & wait`
  const started = await sendRequest(socket, 'POST', '/exec', { command, detached: true, processId })
  test.match(started, { type: 'exec.started', processId })
  // One read: while setsid executes sleep, the process has no arguments.
  const pids = await waitUntil('the process runs', () => {
    const found = findSleepPids(seconds)
    return found.length === 1 && found
  })
  test.equal(findRunners(processId).length, 1)

  const response = await sendRequest(socket, 'POST', '/exec', { command: 'kill -KILL $PPID' })
  test.equal(response, null, 'the agent was killed')
  await waitUntil('the restarted agent responds', async () => (await listProcesses()) !== undefined)
  test.match(await listProcesses(), [{ processId, running: true, lost: false }])
  test.same(findSleepPids(seconds), pids, 'the process outlives its agent')

  await provider.stop(spec.boxId)
  test.same(findSleepPids(seconds), [], 'the process is terminated with the box')
  test.same(findRunners(processId), [], 'its runner is terminated with the box')
  test.ok(existsSync(inHome('.')))

  await provider.start(spec)
  await waitUntil('the agent responds again', async () => (await listProcesses()) !== undefined)
  const [listed] = (await listProcesses()) ?? []
  test.match(listed, { processId, running: false })
  test.ok(listed.lost || listed.signal === 'TERM', 'the exit is reported as SIGTERM or as lost')
})
