// A synchronous run (spec §4.14): one command, the end of what it printed, and how it ended.
import type { FastifyBaseLogger } from 'fastify'
import type { AgentExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import { PROCESS_ID_VARIABLE } from './environment.ts'
import type { SyncEnd, SyncRecorder, SyncRecording } from './history/sync.ts'
import { createOutputTail } from './output-tail.ts'
import { isDead, readProcess } from './process-table.ts'
import type { RunningCommand, Spawner } from './spawner.ts'
import { startError } from './start-error.ts'
import { terminateTree } from './terminate-tree.ts'
import { cwdProblem, resolveCwd } from './working-directory.ts'

export type RunDeps = {
  home: string
  /** Beneath the box's variables, which are beneath the request's. */
  baseEnv: Record<string, string>
  spawner: Spawner
  clock: Clock
  log: FastifyBaseLogger
  /** Absent: runs are not recorded. */
  recorder?: SyncRecorder | undefined
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
  const recordEnd = (recording: SyncRecording | null | undefined, how: Omit<SyncEnd, 'finishedAt'>) =>
    recording?.end({ ...how, finishedAt: clock.now() }, { stdout, stderr })
  const command = await start(request, deps, {
    env: { ...deps.baseEnv, ...request.boxEnv, ...request.env, [PROCESS_ID_VARIABLE]: processId },
    onStdout: stdout.push,
    onStderr: stderr.push,
  }).catch((error: unknown) => {
    // A folder that is not there is a mistake of the request; only what the system could not do is a run that failed.
    if (error instanceof ApiError && error.code === 'exec_failed')
      recordEnd(deps.recorder?.begin(request, null, startedAt), FAILED)
    throw error
  })
  const recording = deps.recorder?.begin(request, command.pid, startedAt)

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
    recordEnd(recording, {
      status: timedOut ? 'timed_out' : signal === null ? 'exited' : 'killed',
      exitCode,
      signal,
    })
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
      ...(recording && { commandId: recording.commandId }),
    }
  } catch (error) {
    recordEnd(recording, FAILED)
    throw error
  } finally {
    clearTimeout(limit)
    abandoned.removeEventListener('abort', abandon)
  }
}

const FAILED = { status: 'failed', exitCode: null, signal: null } as const

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
