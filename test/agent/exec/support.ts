// Serves only the exec routes, for tests of synchronous commands. Helpers for processes that commands start.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createActivityTracker } from '../../../agent/activity-tracker.ts'
import type { DetachedProcesses } from '../../../agent/exec/detached/types.ts'
import { baseEnvironment, createEnvironmentFactory } from '../../../agent/exec/environment.ts'
import { execRoutes } from '../../../agent/exec/routes.ts'
import { SPAWNER_KINDS } from '../../../agent/exec/spawner.ts'
import { hasEnvironmentVariable, listPids } from '../../../agent/process-table.ts'
import { createJsonRouter } from '../../../agent/requests/json-routes.ts'
import type { StreamDialer } from '../../../agent/tunnel/stream-dialer.ts'
import { type ExecResult, execResultSchema } from '../../../shared/api/exec.ts'
import { systemClock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { callRoute } from '../../support/agent-routes.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

const noDetachedProcesses: DetachedProcesses = {
  start: () => Promise.reject(new Error('detached processes are not available in this test')),
  list: () => [],
  get: () => undefined,
  kill: () => Promise.reject(new ApiError('not_found')),
  signal: () => false,
  remove: () => Promise.resolve(),
  subscribe: () => () => {},
  close: () => Promise.resolve(),
}

export const noStreams: StreamDialer = {
  send: () => Promise.reject(new Error('streams are not available in this test')),
  close: () => undefined,
}

/**
 * BOXWOOD_SPAWNER selects the spawner. Default: native where available.
 * @param env the environment of the agent.
 */
export function createExecApp(t: Test, env: Record<string, string | undefined> = process.env) {
  const home = createTempDir(t, 'exec')
  const activity = createActivityTracker(systemClock)
  const router = createJsonRouter()
  const spawnerKind = SPAWNER_KINDS.find((kind) => kind === process.env.BOXWOOD_SPAWNER) ?? null
  const processes = noDetachedProcesses
  const deps = {
    home,
    log: silentLog,
    clock: systemClock,
    activity,
    createEnv: createEnvironmentFactory(baseEnvironment(home, env)),
    spawnerKind,
    processes,
    streamDialer: noStreams,
  }
  const { close } = execRoutes(router, deps)
  t.teardown(close)

  const post = (body: object, signal?: AbortSignal) =>
    callRoute(router, { method: 'POST', path: '/exec', body, ...(signal && { signal }) })
  return {
    router,
    close,
    deps,
    post,
    home,
    activity,
    /** Runs the command to its exit. */
    async exec(command: string, fields: object = {}): Promise<ExecResult> {
      const response = await post({ command, ...fields })
      if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`)
      return execResultSchema.parse(JSON.parse(response.text))
    },
    /** Sends a request that must fail. */
    async expectError(body: object): Promise<{ status: number; code: string; message: string }> {
      const response = await post(body)
      return { status: response.status, ...JSON.parse(response.text).error }
    },
  }
}

/** Waits until a command has written its pid to the file `name` of the home directory. */
export async function waitForPid(home: string, name: string): Promise<number> {
  const path = join(home, name)
  const text = () => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  await waitUntil(`${name} contains a pid`, () => text().endsWith('\n'))
  return Number(text())
}

/** False for a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** All live processes with this HOME in their environment: everything the app started that did not clear it. */
export const findPidsByHome = (home: string): number[] =>
  listPids().filter((pid) => isAlive(pid) && hasEnvironmentVariable(pid, `HOME=${home}`))
