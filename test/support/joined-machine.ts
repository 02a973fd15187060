// A machine that joins a coordinator process by install.sh, in a directory of this machine, and copies of the project with
// another version of the agent.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import type { Test } from 'tap'
import type { Agent } from '../../shared/api/agents.ts'
import { VERSION } from '../../shared/version.ts'
import { bySessionOf } from './cookies.ts'
import { startCoordinatorProcess } from './coordinator-process.ts'
import { listBoxPids } from './find-agent-process.ts'
import { PROJECT_DIR } from './project.ts'
import { runInstaller } from './run-installer.ts'
import { createTempDir } from './temp-dir.ts'
import { startTunnelProxy } from './tunnel-proxy.ts'
import { LONG_DEADLINE_MS, waitUntil } from './wait-until.ts'

/** The changes of a copy: path → [text, replacement]. */
export type Changes = Record<string, [string, string][]>

/** The previous build: another version, with the same version of the protocol. */
export const PREVIOUS_BUILD: Changes = {
  'shared/version.ts': [[`VERSION = '${VERSION}'`, "VERSION = '0.0.9'"]],
}

/** Applies to every copy. Its archives of the agent have the size of their content: gzip uses a CPU for 5 seconds each. */
const WITHOUT_COMPRESSION: Changes = { 'coordinator/agents/bundles/archive.ts': [['level: 6', 'level: 0']] }

/** A copy of the project's programs, which uses the installed packages. */
export function copyProject(t: Test, changes: Changes): string {
  const dir = createTempDir(t, 'project')
  for (const name of ['agent', 'coordinator', 'shared', 'install', 'package.json', 'package-lock.json'])
    cpSync(join(PROJECT_DIR, name), join(dir, name), { recursive: true })
  // Its own directory: the cache of the bundle is in it.
  mkdirSync(join(dir, 'node_modules'))
  for (const name of readdirSync(join(PROJECT_DIR, 'node_modules')))
    if (name !== '.cache')
      symlinkSync(join(PROJECT_DIR, 'node_modules', name), join(dir, 'node_modules', name))
  for (const [path, replacements] of Object.entries({ ...changes, ...WITHOUT_COMPRESSION })) {
    let text = readFileSync(join(dir, path), 'utf8')
    for (const [from, to] of replacements) {
      if (!text.includes(from)) throw new Error(`${path} does not contain ${from}`)
      text = text.replace(from, to)
    }
    writeFileSync(join(dir, path), text)
  }
  return dir
}

/** Starts a coordinator from `projectDir`, with an address for agents that does not change. */
export async function startUpgradableCoordinator(
  t: Test,
  projectDir: string,
  env: Record<string, string> = {},
) {
  const target = { port: 0 }
  const proxy = await startTunnelProxy(() => target.port)
  const coordinator = await startCoordinatorProcess(t, { BOXWOOD_AGENT_URL: proxy.url, ...env }, projectDir)
  t.teardown(() => proxy.close())
  const updateTarget = () => {
    target.port = Number(new URL(coordinator.url).port)
  }
  updateTarget()
  return {
    ...coordinator,
    get url() {
      return coordinator.url
    },
    agentUrl: proxy.url,
    /** Connects the agents to another server, until the coordinator starts the next time. */
    redirectAgents(port: number) {
      target.port = port
    },
    /** Starts the coordinator after it was killed, from this or the last project directory. */
    async startFrom(dir?: string) {
      await coordinator.start(dir)
      updateTarget()
    },
    patchRollout: (body: object) => coordinator.sendJson('PATCH', '/api/v1/agents/rollout', body),
    async findAgent(boxId: string): Promise<Agent> {
      const { agents } = await coordinator.sendJson('GET', '/api/v1/agents')
      const agent = agents.find((candidate: Agent) => candidate.boxId === boxId)
      if (agent === undefined) throw new Error(`there is no agent of box ${boxId}`)
      return agent
    },
    async waitForAgent(
      boxId: string,
      description: string,
      condition: (agent: Agent) => boolean,
    ): Promise<Agent> {
      let last: Agent | undefined
      const found = await waitUntil(
        description,
        async () => {
          last = await this.findAgent(boxId)
          return condition(last) && last
        },
        LONG_DEADLINE_MS,
      ).catch((error: Error) => {
        throw new Error(`${error.message}; the agent is ${JSON.stringify(last)}`)
      })
      return found
    },
  }
}
export type UpgradableCoordinator = Awaited<ReturnType<typeof startUpgradableCoordinator>>

/** The coordinator that a machine joins, by its agents' address. */
export type MachineCoordinator = Pick<
  UpgradableCoordinator,
  'url' | 'dataDir' | 'agentUrl' | 'sendJson' | 'waitForState' | 'exec'
>

/** Signs in as the owner: an API key may not create the token. */
async function createEnrollmentToken({ url, dataDir }: MachineCoordinator): Promise<string> {
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${url}/api/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const secret = readFileSync(join(dataDir, 'sign-in.key'), 'utf8').trim()
  const { headers } = bySessionOf(await post('/sign-in/owner', { secret }))
  const response = await post('/machines', { name: 'fig' }, headers)
  return ((await response.json()) as { token: string }).token
}

/** Joins a machine named fig, whose supervisor runs until the test ends. */
export async function joinMachine(t: Test, coordinator: MachineCoordinator, trialSeconds = 60) {
  const home = createTempDir(t, 'machine')
  const prefix = join(home, 'boxwood')
  const token = await createEnrollmentToken(coordinator)
  const args = ['--token', token, '--prefix', prefix, '--no-service']
  const { status, stderr } = await runInstaller(coordinator.agentUrl, home, { args })
  if (status !== 0) throw new Error(`install.sh failed: ${stderr}`)
  const log: string[] = []
  let supervisor: ChildProcess
  const start = () => {
    supervisor = spawn('/bin/sh', [join(prefix, 'current/supervise.sh'), prefix], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        HOME: home,
        BOXWOOD_RECONNECT_MAX_MS: '500',
        BOXWOOD_TRIAL_SECONDS: String(trialSeconds),
      },
    })
    for (const output of [supervisor.stdout, supervisor.stderr])
      output?.setEncoding('utf8').on('data', (text: string) => log.push(text))
  }
  start()
  let boxId = ''
  t.teardown(async () => {
    if (supervisor.exitCode === null && supervisor.signalCode === null) {
      const exited = once(supervisor, 'exit')
      supervisor.kill('SIGTERM')
      await exited
    }
    // The commands of a failed test.
    for (const pid of boxId === '' ? [] : listBoxPids(boxId)) killIfRunning(pid)
  })
  const { boxes } = await coordinator.sendJson('GET', '/api/v1/boxes?live=1')
  boxId = boxes.find(({ hostname }: { hostname: string }) => hostname === 'fig').id
  await coordinator.waitForState(boxId, 'running')
  const readLink = (name: 'current' | 'previous'): string | null => {
    try {
      return basename(readlinkSync(join(prefix, name)))
    } catch {
      return null
    }
  }
  return {
    ...{ home, prefix, boxId, readLink },
    route: '/v1/box/fig',
    exec: (command: string, options: object = {}) =>
      coordinator.exec('fig', command, { cwd: home, ...options }),
    listVersions: () => readdirSync(join(prefix, 'versions')),
    readLog: () => log.join(''),
    readAgentPid: () => Number(readFileSync(join(prefix, 'state/agent.pid'), 'utf8')),
  }
}
function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

export type JoinedMachine = Awaited<ReturnType<typeof joinMachine>>
