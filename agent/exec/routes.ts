// POST /exec: commands on the box (spec §4.14), to their end or detached.
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { ENV_NAME } from '../../shared/api/common.ts'
import { type AgentExecRequest, agentExecRequest, EXEC_CODES } from '../../shared/api/exec.ts'
import { type AgentStartRequest, agentStartRequest, type ExecStarted } from '../../shared/api/processes.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import type { StreamDialer } from '../tunnel/stream-dialer.ts'
import type { Activity } from '../vitals/activity.ts'
import { startedAnswer } from './detached/answers.ts'
import { detachedRoutes } from './detached/routes.ts'
import type { DetachedProcesses } from './detached/types.ts'
import { baseEnvironment } from './environment.ts'
import type { SyncRecorder } from './history/sync.ts'
import { runCommand } from './run.ts'
import { createSpawner, type SpawnerKind } from './spawner.ts'
import { streamRoutes } from './stream/routes.ts'

export type ExecDeps = {
  /** The box user's home directory; absolute. */
  home: string
  log: FastifyBaseLogger
  clock: Clock
  activity: Activity
  /** The agent's own environment: PATH, LANG and, where the uid has no name, USER come from it. */
  env?: Record<string, string | undefined>
  /** null, and the default: the better one that this system has. */
  spawner?: SpawnerKind | null
  /** These two belong to the caller, who closes them after the app. */
  processes: DetachedProcesses
  /** Absent: synchronous commands are not recorded in the history. */
  recorder?: SyncRecorder
  /** Absent: events are in the answer. */
  streams?: StreamDialer
}

/**
 * Mounts the routes. They throw ApiError; the app's error handler serialises it.
 *
 * A synchronous command belongs to its request: when the caller goes away, or the agent stops, its whole tree is
 * ended. What it left in the background when it ended by itself goes on.
 */
export async function execRoutes(app: FastifyInstance, deps: ExecDeps): Promise<void> {
  const { home, log, clock, activity, processes, recorder, streams } = deps
  const spawner = createSpawner(deps.spawner)
  log.info({ spawner: spawner.kind }, 'commands can run')
  const run = { home, log, clock, spawner, recorder, baseEnv: baseEnvironment(home, deps.env ?? process.env) }
  const running = new Map<AbortController, Promise<unknown>>()

  app.addHook('preClose', (done) => {
    for (const gone of running.keys()) gone.abort()
    done()
  })
  app.addHook('onClose', async () => {
    await Promise.allSettled(running.values())
    await spawner.close()
  })

  // It belongs to nobody: whoever goes away, it goes on.
  const start = async (request: AgentStartRequest): Promise<ExecStarted> => {
    activity.touch()
    return startedAnswer(await processes.start(request))
  }

  detachedRoutes(app, processes)
  streamRoutes(app, { processes, log, dialer: streams })

  app.post('/exec', async (request, reply) => {
    const body = parseRequest(request.body)
    if ('processId' in body) return start(body)
    const gone = new AbortController()
    // Before the answer this means that the caller closed the connection, or reset the stream.
    reply.raw.once('close', () => {
      if (running.has(gone)) gone.abort()
    })
    const done = activity.begin()
    const result = runCommand(body, run, gone.signal)
    running.set(gone, result)
    try {
      return await result
    } finally {
      running.delete(gone)
      done()
    }
  })
}

function parseRequest(body: unknown): AgentExecRequest | AgentStartRequest {
  const detached = typeof body === 'object' && body !== null && 'detached' in body && body.detached === true
  const parsed = (detached ? agentStartRequest : agentExecRequest).safeParse(body)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    const field = issue?.path[0]
    throw new ApiError(
      codeOf(field),
      issue && `${field === undefined ? 'body' : String(field)}: ${issue.message}`,
    )
  }
  const { env, boxEnv } = parsed.data
  // The coordinator checked its callers' variables; a name the kernel would take apart otherwise stops here.
  for (const [name, value] of [...Object.entries(boxEnv ?? {}), ...Object.entries(env ?? {})]) {
    if (!ENV_NAME.test(name) || value.includes('\0')) {
      throw new ApiError('invalid_request', `env: ${JSON.stringify(name)} cannot be set.`)
    }
  }
  return parsed.data
}

function codeOf(field: PropertyKey | undefined): ErrorCode {
  return field === 'timeoutSeconds' ? EXEC_CODES.timeoutSeconds : 'invalid_request'
}
