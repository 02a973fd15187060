// Routes of commands (spec §4.14): POST /exec, synchronous and detached, and the routes of detached processes.
import type { Logger } from 'pino'
import { type AgentExecRequest, agentExecRequestSchema, EXEC_ERROR_CODES } from '../../shared/api/exec.ts'
import {
  type AgentStartRequest,
  agentStartRequestSchema,
  type ExecStarted,
} from '../../shared/api/processes.ts'
import type { Clock } from '../../shared/clock.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import { type JsonRequest, type JsonRouter, RequestResetError } from '../requests/json-routes.ts'
import type { StartTimer } from '../running-clock.ts'
import type { StreamDialer } from '../tunnel/stream-dialer.ts'
import { validateRequest } from '../validate-request.ts'
import { startedResponse } from './detached/responses.ts'
import { detachedRoutes } from './detached/routes.ts'
import type { DetachedProcesses } from './detached/types.ts'
import { assertEnvironment, type CreateEnvironment } from './environment.ts'
import type { SyncRecorder } from './history/sync-recorder.ts'
import { runCommand } from './run.ts'
import { createSpawner, type SpawnerKind } from './spawner.ts'
import { streamRoutes } from './stream/routes.ts'

export type ExecDeps = {
  /** The box user's home directory, absolute. */
  home: string
  log: Logger
  clock: Clock
  /** Starts the timers of the time limits of synchronous commands. */
  startTimer?: StartTimer
  activity: ActivityTracker
  createEnv: CreateEnvironment
  /** Default: native where available. */
  spawnerKind?: SpawnerKind | null
  /** Closed by the caller after the routes. */
  processes: DetachedProcesses
  /** Closed by the caller after the routes. Absent: synchronous commands are not recorded in the history. */
  recorder?: SyncRecorder
  streamDialer: StreamDialer
  /** When it aborts, synchronous commands are terminated and new commands are refused. Default: never. */
  stopping?: AbortSignal
}

/**
 * Registers the routes. `close` terminates synchronous commands and waits for them.
 *
 * A synchronous command is bound to its request: when the client disconnects or the agent stops, the command's process
 * tree is terminated. After a normal exit, background processes of the command keep running.
 */
export function execRoutes(router: JsonRouter, deps: ExecDeps): { close(): Promise<void> } {
  const { home, log, clock, activity, processes, recorder, streamDialer, createEnv } = deps
  const { stopping = new AbortController().signal } = deps
  const spawner = createSpawner(deps.spawnerKind)
  log.info({ spawner: spawner.kind }, 'exec routes ready')
  const runDeps = { home, log, clock, startTimer: deps.startTimer, spawner, recorder, createEnv }
  const running = new Map<JsonRequest, Promise<unknown>>()

  const terminateRunning = () => {
    for (const request of running.keys()) request.abort()
  }
  stopping.addEventListener('abort', terminateRunning, { once: true })

  const startDetached = async (request: AgentStartRequest): Promise<ExecStarted> => {
    activity.touch()
    return startedResponse(await processes.start(request))
  }

  detachedRoutes(router, processes)
  streamRoutes(router, { processes, log, streamDialer })

  router.add('POST', '/exec', async (request) => {
    if (stopping.aborted) throw new RequestResetError()
    const body = parseExecRequest(request.body)
    if ('processId' in body) return startDetached(body)
    const endActivity = activity.startOperation()
    const result = runCommand(body, runDeps, request.signal)
    running.set(request, result)
    try {
      return await result
    } finally {
      running.delete(request)
      endActivity()
    }
  })

  return {
    async close() {
      terminateRunning()
      await Promise.allSettled(running.values())
      spawner.close()
    },
  }
}

function parseExecRequest(body: unknown): AgentExecRequest | AgentStartRequest {
  const isDetached = typeof body === 'object' && body !== null && 'detached' in body && body.detached === true
  const schema = isDetached ? agentStartRequestSchema : agentExecRequestSchema
  const request = validateRequest<typeof agentStartRequestSchema | typeof agentExecRequestSchema>(
    schema,
    body,
    {
      codes: EXEC_ERROR_CODES,
    },
  )
  assertEnvironment(request.boxEnv)
  assertEnvironment(request.env)
  return request
}
