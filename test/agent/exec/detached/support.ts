// Detached processes over their own routes, with an agent that can come and go.
import { join } from 'node:path'
import { fastify } from 'fastify'
import type { Test } from 'tap'
import { type DetachedOptions, openDetachedProcesses } from '../../../../agent/exec/detached/processes.ts'
import { createRunner, RUNNER_KINDS, type RunnerKind } from '../../../../agent/exec/detached/runner.ts'
import type { DetachedProcess, ProcessExit } from '../../../../agent/exec/detached/types.ts'
import { listPids } from '../../../../agent/exec/process-table.ts'
import { type ExecDeps, execRoutes } from '../../../../agent/exec/routes.ts'
import { createActivityTracker } from '../../../../agent/vitals/activity-tracker.ts'
import {
  type ExecKilled,
  type ExecStarted,
  type ExecStatus,
  execKilled,
  execList,
  execStarted,
  execStatus,
} from '../../../../shared/api/processes.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { ApiError, edgeErrorBody } from '../../../../shared/errors.ts'
import { newId } from '../../../../shared/ids.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { isAlive, NO_STREAMS, startedUnder, waitUntil } from '../exec-app.ts'

/** The kind of runner that the tests of this folder are run with. */
export const kind: RunnerKind | null = RUNNER_KINDS.find((one) => one === process.env.BOXWOOD_RUNNER) ?? null

/** False where there is no C compiler. */
export const HAS_NATIVE = createRunner(null, null).kind === 'native'
export const isNative = HAS_NATIVE && kind !== 'sh'

type Options = Partial<DetachedOptions & Pick<ExecDeps, 'streams'>>

/** An agent's view of one state folder. Open another on the same `home` after closing the first: a restart. */
export async function openAgent(t: Test, home: string, options: Options = {}) {
  const activity = createActivityTracker(systemClock)
  const app = fastify({ bodyLimit: 16 * 1024 * 1024 })
  const dir = join(home, '.state/exec')
  const deps = {
    dir,
    home,
    log: app.log,
    clock: systemClock,
    activity,
    runner: kind,
    streams: NO_STREAMS,
    ...options,
  }
  const processes = await openDetachedProcesses(deps)
  app.setErrorHandler((error, _request, reply) => {
    const refusal = error instanceof ApiError ? error : new ApiError('internal_error', String(error))
    return reply.status(refusal.status).send(edgeErrorBody(refusal))
  })
  app.register((scope) => execRoutes(scope, { ...deps, processes }))
  let open = true
  const close = async () => {
    if (!open) return
    open = false
    await app.close()
    await processes.close()
  }
  t.teardown(close)

  const start = (command: string, more: object = {}) =>
    app.inject({
      method: 'POST',
      url: '/exec',
      payload: { command, detached: true, processId: newId('process'), ...more },
    })
  const refusal = (answer: { statusCode: number; json(): { error: { code: string; message: string } } }) => ({
    status: answer.statusCode,
    ...answer.json().error,
  })
  return {
    app,
    dir,
    home,
    activity,
    processes,
    close,
    async start(command: string, more: object = {}): Promise<ExecStarted> {
      const answer = await start(command, more)
      if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${answer.body}`)
      return execStarted.parse(answer.json())
    },
    refused: async (command: string, more: object = {}) => refusal(await start(command, more)),
    async list() {
      return execList.parse((await app.inject('/exec')).json()).processes
    },
    async status(processId: string, tail?: number): Promise<ExecStatus> {
      const answer = await app.inject(`/exec/${processId}${tail === undefined ? '' : `?tail=${tail}`}`)
      return execStatus.parse(answer.json())
    },
    async kill(processId: string): Promise<ExecKilled> {
      const answer = await app.inject({ method: 'DELETE', url: `/exec/${processId}` })
      if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${answer.body}`)
      return execKilled.parse(answer.json())
    },
    get(processId: string): DetachedProcess {
      const process = processes.get(processId)
      if (process === undefined) throw new Error(`${processId} is not known`)
      return process
    },
    /** Waits for its end. */
    async ended(processId: string): Promise<ProcessExit> {
      const process = processes.get(processId)
      if (process === undefined) throw new Error(`${processId} is not known`)
      await waitUntil(`${processId} has exited`, () => process.exit !== null)
      if (process.exit === null) throw new Error('unreachable')
      return process.exit
    },
  }
}

export type TestAgent = Awaited<ReturnType<typeof openAgent>>

export function newHome(t: Test): string {
  const home = createTempDir(t, 'detached')
  t.teardown(async () => {
    // The runners carry it too, and end with what they run.
    for (const pid of startedUnder(home)) tryKill(pid)
    await waitUntil('everything it started is gone', () => startedUnder(home).length === 0)
  })
  return home
}

export const agent = (t: Test, options: Options = {}) => openAgent(t, newHome(t), options)

export function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Everything alive with this home that is no runner: commands and what they started. */
export const alive = (pids: number[]): number[] =>
  pids.filter((pid) => listPids().includes(pid) && isAlive(pid))
