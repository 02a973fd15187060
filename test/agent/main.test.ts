// The agent process: its configuration, a command, exclusive use of the state directory, signals and the Unix socket.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { arch, cpus, release } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { findNativeProgram } from '../../agent/exec/native-program.ts'
import { readProcess } from '../../agent/process-table.ts'
import type { Machine } from '../../shared/api/machine.ts'
import type { DurableReport } from '../../shared/api/reports.ts'
import { newId } from '../../shared/ids.ts'
import { NATIVE_PARTS } from '../../shared/native-file-names.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startTunnelServer } from '../support/tunnel.ts'
import { DEADLINE_MS, LONG_DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import { isAlive } from './exec/support.ts'

const MAIN = join(import.meta.dirname, '../../agent/main.ts')

type AgentProcess = { child: ChildProcess; stderr(): string; exit: Promise<unknown[]> }

function startAgentProcess(t: Test, env: Record<string, string>): AgentProcess {
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  return { child, stderr: () => stderr, exit: once(child, 'exit') }
}

async function createBoxEnv(
  t: Test,
  url: string,
  box = { boxId: randomUUID() as string, token: 'bxt_test' },
) {
  const stateDir = createTempDir(t, 'agent')
  await writeFile(join(stateDir, 'token'), `${box.token}\n`, { mode: 0o600 })
  return { BOXWOOD_URL: url, BOXWOOD_BOX: box.boxId, BOXWOOD_STATE: stateDir, BOXWOOD_HOME: stateDir }
}

t.test('prints every missing or invalid configuration variable and exits with 1', async (t) => {
  const { exit, stderr } = startAgentProcess(t, {
    BOXWOOD_URL: 'ftp://x',
    BOXWOOD_BOX: 'x',
    BOXWOOD_RECONNECT_MAX_MS: '1',
    BOXWOOD_LOG_BYTES: '1',
  })
  t.same(await exit, [1, null])
  for (const name of [
    'BOXWOOD_URL',
    'BOXWOOD_BOX',
    'BOXWOOD_STATE',
    'BOXWOOD_RECONNECT_MAX_MS',
    'BOXWOOD_LOG_BYTES',
  ])
    t.match(stderr(), name)
})

t.test('connects, runs a command, reports its start, and exits on SIGTERM', async (t) => {
  const received: string[] = []
  const machines: Machine[] = []
  const coordinator = await startTunnelServer({
    ingest: {
      async apply(_box, _epoch, reports) {
        for (const { report } of reports) {
          received.push(report.type)
          if (report.type === 'machine') machines.push(report.machine)
        }
      },
      heartbeat: () => void received.push('heartbeat'),
      listeners: () => undefined,
    },
  })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const { child, exit } = startAgentProcess(t, await createBoxEnv(t, coordinator.url, box))
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const { status, body } = await tunnel.call({
    method: 'POST',
    path: '/exec',
    body: '{"command":"echo hello"}',
    timeoutMs: DEADLINE_MS,
  })
  t.equal(status, 200)
  t.match(JSON.parse(body.toString()), { exitCode: 0, stdout: 'hello\n' })
  await waitUntil(
    'reports and a heartbeat have arrived',
    () => received.includes('heartbeat') && received.includes('agent.started') && machines.length > 0,
  )
  t.match(machines, [{ kernel: release(), arch: arch(), cpuCount: cpus().length, os: /./, cpuModel: /./ }])

  child.kill('SIGTERM')
  t.same(await exit, [0, null])
})

t.test('on SIGTERM, delivers the exits of its commands before it disconnects', async (t) => {
  const received: DurableReport[] = []
  const coordinator = await startTunnelServer({
    ingest: {
      apply: async (_box, _epoch, reports) => void received.push(...reports.map(({ report }) => report)),
      heartbeat: () => undefined,
      listeners: () => undefined,
    },
  })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const { child, exit } = startAgentProcess(t, await createBoxEnv(t, coordinator.url, box))
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const exec = async (commandId: string, request: object) => {
    const record = { commandId, claimsToken: 'signed', keepOutput: true }
    const body = JSON.stringify({ ...request, record })
    const response = await tunnel.call({ method: 'POST', path: '/exec', body, timeoutMs: LONG_DEADLINE_MS })
    return JSON.parse(response.body.toString())
  }
  const [syncId, detachedId, otherId] = [newId('process'), newId('process'), newId('process')]
  const started = await exec(detachedId, {
    ...{ command: 'echo output; exec sleep 300', detached: true, processId: detachedId },
  })
  const other = await exec(otherId, { command: 'exec sleep 300', detached: true, processId: otherId })
  t.after(() => process.kill(other.pid, 'SIGKILL'))
  const result = exec(syncId, { command: 'exec sleep 300' })
  await waitUntil('all commands run', () => {
    const startedIds = received.flatMap((report) =>
      report.type === 'command.started' ? report.commandId : [],
    )
    return startedIds.length === 3
  })

  // As when the machine stops: its processes get SIGTERM too, the runner before its command.
  process.kill(readProcess(started.pid)?.ppid ?? Number.NaN, 'SIGTERM')
  process.kill(started.pid, 'SIGTERM')
  child.kill('SIGTERM')
  t.match(await result, { signal: 'TERM', timedOut: false }, 'the client gets the result')
  t.same(await exit, [0, null])
  const exits = received.filter((report) => report.type === 'command.finished')
  t.same(new Set(exits.map(({ commandId }) => commandId)), new Set([syncId, detachedId]))
  t.match(exits, [
    { status: 'killed', signal: 'TERM' },
    { status: 'killed', signal: 'TERM' },
  ])
  t.match(
    received.filter((report) => report.type === 'command.output'),
    [{ commandId: detachedId, data: Buffer.from('output\n').toString('base64') }],
  )
})

t.test('a terminal session that the next agent cannot continue delays a restart', async (t) => {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const env = await createBoxEnv(t, coordinator.url, box)
  const { exit } = startAgentProcess(t, env)
  const connected = async () => {
    const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
    return async (method: 'GET' | 'POST' | 'DELETE', path: string, body?: string) => {
      const response = await tunnel.call({ method, path, body, timeoutMs: DEADLINE_MS })
      return { status: response.status, text: response.body.toString() }
    }
  }
  const send = await connected()
  const started = await send('POST', '/terminal/sessions', '{"session":"main"}')
  t.equal(started.status, 200)
  const { pid } = JSON.parse(started.text)
  t.equal((await send('POST', '/restart')).status, 429, 'the next build may be of an earlier project')
  t.equal((await send('POST', '/restart', '{"terminalHostVersions":[0]}')).status, 429)
  const hasHosts = findNativeProgram(NATIVE_PARTS.terminalHost) !== undefined
  if (!hasHosts) {
    t.equal(await coordinator.tunnels.restartAgent(box.boxId), false)
    t.ok(coordinator.tunnels.current(box.boxId))
    t.equal((await send('DELETE', '/terminal/sessions/main')).status, 200)
  }
  const stopped = new AbortController()
  t.after(() => stopped.abort())
  const { generation } = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const exiting = coordinator.tunnels.restartAgent(box.boxId)
  const waiting = coordinator.tunnels.wait(box.boxId, DEADLINE_MS, stopped.signal).catch(() => undefined)
  await t.rejects(coordinator.tunnels.restartAgent(box.boxId), { code: 'box_unreachable' })
  t.equal(await exiting, true)
  t.same(await exit, [0, null])
  if (!hasHosts) return

  for (const signal of ['SIGHUP', 'SIGTERM'] as const) {
    const next = startAgentProcess(t, env)
    const { text } = await (await connected())('GET', '/terminal/sessions')
    t.match(JSON.parse(text).sessions, [{ session: 'main', pid }])
    t.not((await waiting)?.generation, generation, 'requests wait for the next agent')
    next.child.kill(signal)
    t.same(await next.exit, [0, null])
    t.equal(isAlive(pid), signal === 'SIGHUP', signal)
  }
})

t.test('runs while its log cannot be written', async (t) => {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH ?? '', ...(await createBoxEnv(t, coordinator.url, box)) },
    // Every write to /dev/full fails with ENOSPC.
    stdio: ['ignore', 'ignore', openSync('/dev/full', 'w')],
  })
  t.after(() => child.kill('SIGKILL'))
  const exit = once(child, 'exit')
  const tunnel = await Promise.race([
    coordinator.tunnels.wait(box.boxId, DEADLINE_MS),
    exit.then((status) => Promise.reject(new Error(`the agent exited: ${status}`))),
  ])
  const { status } = await tunnel.call({
    method: 'POST',
    path: '/exec',
    body: '{"command":"true"}',
    timeoutMs: DEADLINE_MS,
  })
  t.equal(status, 200)
  child.kill('SIGTERM')
  t.same(await exit, [0, null])
})

t.test(
  'a second agent with the same state directory exits with an error; after kill -9 a new one starts',
  async (t) => {
    const env = { ...(await createBoxEnv(t, 'http://127.0.0.1:1')), BOXWOOD_RECONNECT_MAX_MS: '100' }
    const first = startAgentProcess(t, env)
    await waitUntil('the first agent runs', () => first.stderr().includes('agent started'))
    const second = startAgentProcess(t, env)
    t.same(await second.exit, [1, null])
    t.match(second.stderr(), 'another agent is running')
    first.child.kill('SIGKILL')
    await first.exit
    const third = startAgentProcess(t, env)
    await waitUntil('the third agent runs', () => third.stderr().includes('agent started'))
    third.child.kill('SIGTERM')
    t.same(await third.exit, [0, null])
  },
)
