// Detached processes in a local box with the real agent survive the agent and are terminated with the box.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { JsonMethod } from '../../../../agent/requests/json-routes.ts'
import { listenOnAgentSocket } from '../../../../coordinator/http/agent-socket.ts'
import { listPids, readArgv, readStat } from '../../../../coordinator/providers/parts/proc.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { findSleepPids, uniqueSleepSeconds } from './find-processes.ts'
import { projectRoot, startBox } from './support.ts'

/** An argument of the runner is the process directory, which is named after the process id. */
const findRunners = (processId: string) =>
  listPids().filter(
    (pid) => readStat(pid) !== null && readArgv(pid).some((argument) => argument.endsWith(`/${processId}`)),
  )

testEachLevel('runs a detached process until the box stops, also without its agent', async (test, level) => {
  const seconds = uniqueSleepSeconds()
  // The agent as the provider runs it.
  const agentCommand =
    level === 'process'
      ? [process.execPath, `${projectRoot}agent/main.ts`]
      : ['/run/boxwood/bin/node', '/run/boxwood/agent/current/agent.mjs']
  const coordinator = await startTunnelServer()
  test.teardown(() => coordinator.close())
  const socketDir = createTempDir(test, 'socket')
  const agentSocket = await listenOnAgentSocket(socketDir, coordinator.server)
  test.teardown(() => agentSocket.close())
  const options = { level, graceMs: 2000, agentCommand, socketDir }
  const { provider, spec, inHome } = await startBox(test, options)
  coordinator.tokens.set(spec.boxId, spec.agentToken)
  /** Returns null while the agent does not respond. */
  const sendRequest = async (method: JsonMethod, path: string, body?: object) => {
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await coordinator.tunnels
      .current(spec.boxId)
      ?.call({ method, path, ...content, timeoutMs: DEADLINE_MS })
      .catch(() => null)
    return response ? JSON.parse(response.body.toString()) : null
  }
  const listProcesses = async () => (await sendRequest('GET', '/exec'))?.processes
  await waitUntil('the agent responds', async () => (await listProcesses()) !== undefined)
  const processId = `p_${randomBytes(12).toString('hex')}`
  const command = `setsid sleep ${seconds} & wait`
  const started = await sendRequest('POST', '/exec', { command, detached: true, processId })
  test.match(started, { type: 'exec.started', processId })
  // One read: while setsid executes sleep, the process has no arguments.
  const pids = await waitUntil('the process runs', () => {
    const found = findSleepPids(seconds)
    return found.length === 1 && found
  })
  test.equal(findRunners(processId).length, 1)

  const response = await sendRequest('POST', '/exec', { command: 'kill -KILL $PPID' })
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
