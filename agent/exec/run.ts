// A synchronous run (spec §4.14): one command, the end of what it printed, and how it ended.
import { getSystemErrorMessage } from 'node:util'
import type { FastifyBaseLogger } from 'fastify'
import type { AgentExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import { errnoOf } from '../files/errors.ts'
import { PROCESS_ID_VARIABLE } from './environment.ts'
import { createOutputTail } from './output-tail.ts'
import { isDead, readProcess } from './process-table.ts'
import type { RunningCommand, Spawner } from './spawner.ts'
import { terminateTree } from './terminate-tree.ts'
import { cwdProblem, resolveCwd } from './working-directory.ts'

export type RunDeps = {
  home: string
  /** Beneath the box's variables, which are beneath the request's. */
  baseEnv: Record<string, string>
  spawner: Spawner
  clock: Clock
  log: FastifyBaseLogger
}

/**
 * Runs the command to its end. When its time is up, or when `abandoned` fires, its whole tree is ended first.
 * @throws ApiError not_found, invalid_path or permission_denied for a cwd it cannot start in; exec_failed, with the
 * system's words, when it cannot be started or cannot be ended
 */
export async function runCommand(
  request: AgentExecRequest,
  deps: RunDeps,
  abandoned: AbortSignal,
): Promise<ExecResult> {
  const { clock, log } = deps
  const processId = newId('process')
  const stdout = createOutputTail(LIMITS.syncOutputBytes)
  const stderr = createOutputTail(LIMITS.syncOutputBytes)
  const startedAt = clock.now()
  const command = await start(request, deps, {
    env: { ...deps.baseEnv, ...request.boxEnv, ...request.env, [PROCESS_ID_VARIABLE]: processId },
    onStdout: stdout.push,
    onStderr: stderr.push,
  })

  let timedOut = false
  let ending: Promise<void> | undefined
  const unkillable = Promise.withResolvers<never>()
  const end = () => {
    ending ??= terminateTree({ pid: command.pid, processId }).then(({ survivors }) => {
      if (survivors.length > 0) log.warn({ processId, survivors }, 'processes outlived SIGKILL')
      if (survivors.includes(command.pid)) throw new ApiError('exec_failed', 'The command cannot be ended.')
    })
    ending.catch(unkillable.reject)
  }
  const limit = setTimeout(
    () => {
      // It may have ended by itself already, with the news still on its way.
      if (!isAlive(command)) return
      timedOut = true
      end()
    },
    (request.timeoutSeconds ?? LIMITS.execTimeoutSeconds.default) * 1000,
  )
  const abandon = () => {
    if (isAlive(command)) end()
  }
  abandoned.addEventListener('abort', abandon, { once: true })
  if (abandoned.aborted) abandon()

  try {
    const { exitCode, signal } = await Promise.race([command.exit, unkillable.promise])
    await ending
    return {
      ok: true,
      type: 'exec.result',
      exitCode,
      signal,
      stdout: stdout.text(),
      stderr: stderr.text(),
      stdoutTruncated: stdout.truncated(),
      stderrTruncated: stderr.truncated(),
      timedOut,
      startedAt: toTimestamp(startedAt),
      finishedAt: toTimestamp(clock.now()),
      cwd: request.cwd || '~',
    }
  } finally {
    clearTimeout(limit)
    abandoned.removeEventListener('abort', abandon)
  }
}

/** Not reaped, and no zombie either: only then does a signal of ours end it. */
function isAlive(command: RunningCommand): boolean {
  const entry = command.isRunning() ? readProcess(command.pid) : undefined
  return entry !== undefined && !isDead(entry)
}

async function start(
  request: AgentExecRequest,
  { home, spawner }: RunDeps,
  options: Omit<Parameters<Spawner['start']>[1], 'cwd'>,
): Promise<RunningCommand> {
  const cwd = resolveCwd(home, request.cwd)
  try {
    return await spawner.start(request.command, { ...options, cwd })
  } catch (error) {
    const problem = request.cwd === undefined ? undefined : await cwdProblem(cwd)
    throw problem ?? startError(error)
  }
}

function startError(error: unknown): unknown {
  if (errnoOf(error) === null || !(error instanceof Error)) return error
  const words = 'errno' in error && typeof error.errno === 'number' ? getSystemErrorMessage(error.errno) : ''
  return new ApiError('exec_failed', `The command cannot be started: ${words} (${error.message}).`, {
    cause: error,
  })
}
