// Serves the exec routes with detached processes, for tests that restart the agent within one process.
import { join } from 'node:path'
import type { Test } from 'tap'
import { createActivityTracker } from '../../../../agent/activity-tracker.ts'
import { type DetachedOptions, openDetachedProcesses } from '../../../../agent/exec/detached/processes.ts'
import { createRunner, RUNNER_KINDS, type RunnerKind } from '../../../../agent/exec/detached/runner.ts'
import type { DetachedProcess, ProcessExit } from '../../../../agent/exec/detached/types.ts'
import { baseEnvironment, createEnvironmentFactory } from '../../../../agent/exec/environment.ts'
import { type ExecDeps, execRoutes } from '../../../../agent/exec/routes.ts'
import {
  hasEnvironmentVariable,
  hasNoArguments,
  isDead,
  listPids,
  readProcess,
} from '../../../../agent/process-table.ts'
import { createJsonRouter } from '../../../../agent/requests/json-routes.ts'
import {
  type ExecKilled,
  type ExecStarted,
  type ExecStatus,
  execKilledSchema,
  execListSchema,
  execStartedSchema,
  execStatusSchema,
} from '../../../../shared/api/processes.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { newId } from '../../../../shared/ids.ts'
import { callRoute, type RouteRequest } from '../../../support/agent-routes.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { noStreams } from '../support.ts'

/** Selected by BOXWOOD_RUNNER. null: native where available. */
export const runnerKind: RunnerKind | null =
  RUNNER_KINDS.find((kind) => kind === process.env.BOXWOOD_RUNNER) ?? null

/** False without a C compiler. */
export const hasNativeRunner = createRunner(null, null).kind === 'native'
export const isNativeRunner = hasNativeRunner && runnerKind !== 'sh'

type Options = Partial<DetachedOptions & Pick<ExecDeps, 'streamDialer'>>

/** Opens the state directory in `home`. To restart the agent, close it and open another one with the same `home`. */
export async function openAgent(t: Test, home: string, options: Options = {}) {
  const activity = createActivityTracker(systemClock)
  const router = createJsonRouter()
  const dir = join(home, '.state/exec')
  const deps = {
    dir,
    home,
    log: silentLog,
    clock: systemClock,
    activity,
    runnerKind,
    createEnv: createEnvironmentFactory(baseEnvironment(home, process.env)),
    streamDialer: noStreams,
    ...options,
  }
  const processes = await openDetachedProcesses(deps)
  const routes = execRoutes(router, { ...deps, processes })
  let closed = false
  const close = async () => {
    if (closed) return
    closed = true
    await routes.close()
    await processes.close()
  }
  t.teardown(close)

  const request = (request: RouteRequest) => callRoute(router, request)
  const postStart = (command: string, fields: object) =>
    request({
      method: 'POST',
      path: '/exec',
      body: { command, detached: true, processId: newId('process'), ...fields },
    })
  const getProcess = (processId: string): DetachedProcess => {
    const process = processes.get(processId)
    if (process === undefined) throw new Error(`${processId} does not exist`)
    return process
  }
  return {
    request,
    log: deps.log,
    dir,
    home,
    activity,
    processes,
    close,
    async start(command: string, fields: object = {}): Promise<ExecStarted> {
      const response = await postStart(command, fields)
      if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`)
      return execStartedSchema.parse(JSON.parse(response.text))
    },
    /** Sends a start request that must fail. */
    async expectStartError(command: string, fields: object = {}) {
      const response = await postStart(command, fields)
      return { status: response.status, ...JSON.parse(response.text).error }
    },
    async list() {
      return execListSchema.parse(JSON.parse((await request({ path: '/exec' })).text)).processes
    },
    async getStatus(processId: string, tail?: number): Promise<ExecStatus> {
      const path = `/exec/${processId}${tail === undefined ? '' : `?tail=${tail}`}`
      return execStatusSchema.parse(JSON.parse((await request({ path })).text))
    },
    async kill(processId: string): Promise<ExecKilled> {
      const response = await request({ method: 'DELETE', path: `/exec/${processId}` })
      if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`)
      return execKilledSchema.parse(JSON.parse(response.text))
    },
    getProcess,
    async waitForExit(processId: string): Promise<ProcessExit> {
      const process = getProcess(processId)
      await waitUntil(`${processId} has exited`, () => process.exit !== null)
      if (process.exit === null) throw new Error('unreachable')
      return process.exit
    },
  }
}

export type TestAgent = Awaited<ReturnType<typeof openAgent>>

const ownStartTime = readProcess(process.pid)?.startTime ?? 0

/**
 * Kills the processes with this HOME in their environment, including the runners. A process in the middle of execve has no
 * environment: 'some' until it can be assigned.
 */
function killByHome(home: string): 'none' | 'some' {
  let found: 'none' | 'some' = 'none'
  for (const pid of listPids()) {
    const entry = readProcess(pid)
    if (entry === undefined || isDead(entry) || entry.startTime < ownStartTime) continue
    const hasHome = () => hasEnvironmentVariable(pid, `HOME=${home}`)
    // Checked again after hasNoArguments(): the execve may have completed in between.
    if (!hasHome() && !hasNoArguments(entry) && !hasHome()) continue
    found = 'some'
    if (hasHome()) killIfAlive(pid)
  }
  return found
}

/** Creates a home directory. At the end of the test, every process started with it is killed. */
export function createHome(t: Test): string {
  const home = createTempDir(t, 'detached')
  t.teardown(async () => {
    await waitUntil('every process has exited', () => killByHome(home) === 'none')
  })
  return home
}

/** Opens an agent with a new home directory. */
export const createAgent = (t: Test, options: Options = {}) => openAgent(t, createHome(t), options)

export function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
