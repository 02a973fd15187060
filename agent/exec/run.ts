// Runs a synchronous command (spec §4.14) and returns the tail of its output and its exit status.
import type { Logger } from 'pino'
import type { AgentExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import { isDead, PROCESS_ID_VARIABLE, readProcess } from '../process-table.ts'
import { type StartTimer, startWallTimer } from '../running-clock.ts'
import type { CreateEnvironment } from './environment.ts'
import type { SyncExit, SyncRecorder, SyncRecording } from './history/sync-recorder.ts'
import { createOutputTail } from './output-tail.ts'
import type { RunningCommand, Spawner } from './spawner.ts'
import { toStartError } from './start-error.ts'
import { SURVIVED_MESSAGE, terminateTree } from './terminate-tree.ts'
import { findCwdError, resolveCwd } from './working-directory.ts'

export type RunDeps = {
  home: string
  /** The box's variables override these, and the request's variables override both. */
  createEnv: CreateEnvironment
  spawner: Spawner
  clock: Clock
  /** Starts the timer of the time limit. */
  startTimer?: StartTimer | undefined
  log: Logger
  /** Absent: commands are not recorded. */
  recorder?: SyncRecorder | undefined
}

/**
 * Runs the command until its exit. At the time limit, or when `signal` aborts, terminates the command's process tree.
 * @throws ApiError not_found, invalid_path or permission_denied for an unusable cwd; exec_failed, with the system's
 * message, when the command cannot be started or terminated
 */
export async function runCommand(
  request: AgentExecRequest,
  deps: RunDeps,
  signal: AbortSignal,
): Promise<ExecResult> {
  const { clock, log, startTimer = startWallTimer } = deps
  const processId = newId('process')
  const stdout = createOutputTail(LIMITS.syncOutputBytes)
  const stderr = createOutputTail(LIMITS.syncOutputBytes)
  const startedAt = clock.now()
  const recordExit = (recording: SyncRecording | null | undefined, exit: Omit<SyncExit, 'finishedAt'>) =>
    void recording?.finish({ ...exit, finishedAt: clock.now() }, { stdout, stderr })
  const command = await startCommand(request, deps, {
    env: deps.createEnv(request.boxEnv, request.env, { [PROCESS_ID_VARIABLE]: processId }),
    onStdout: stdout.push,
    onStderr: stderr.push,
  }).catch((error: unknown) => {
    // An unusable cwd is a faulty request, not a failed command: only exec_failed is recorded.
    if (error instanceof ApiError && error.code === 'exec_failed')
      recordExit(deps.recorder?.start(request, null, startedAt), FAILED)
    throw error
  })
  const recording = deps.recorder?.start(request, command.pid, startedAt)

  let timedOut = false
  let termination: Promise<void> | undefined
  const terminationFailed = Promise.withResolvers<never>()
  const terminate = () => {
    termination ??= terminateTree({ pid: command.pid, processId }).then(({ survivors }) => {
      if (survivors.length > 0) log.warn({ processId, survivors }, 'processes survived SIGKILL')
      if (survivors.includes(command.pid)) throw new ApiError('exec_failed', SURVIVED_MESSAGE)
    })
    termination.catch(terminationFailed.reject)
  }
  const stopTimer = startTimer(
    () => {
      // The command may have exited, with the exit event still queued.
      if (!isAlive(command)) return
      timedOut = true
      terminate()
    },
    (request.timeoutSeconds ?? LIMITS.execTimeoutSeconds.default) * 1000,
  )
  const onAbort = () => {
    if (isAlive(command)) terminate()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()

  try {
    const { exitCode, signal: exitSignal } = await Promise.race([command.exit, terminationFailed.promise])
    await termination
    recordExit(recording, {
      status: timedOut ? 'timed_out' : exitSignal === null ? 'exited' : 'killed',
      exitCode,
      signal: exitSignal,
    })
    return {
      ok: true,
      type: 'exec.result',
      exitCode,
      signal: exitSignal,
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
    recordExit(recording, FAILED)
    throw error
  } finally {
    stopTimer()
    signal.removeEventListener('abort', onAbort)
  }
}

const FAILED = { status: 'failed', exitCode: null, signal: null } as const

/** Neither reaped nor a zombie: a signal still has an effect. */
function isAlive(command: RunningCommand): boolean {
  const entry = command.isRunning() ? readProcess(command.pid) : undefined
  return entry !== undefined && !isDead(entry)
}

async function startCommand(
  request: AgentExecRequest,
  { home, spawner }: RunDeps,
  options: Omit<Parameters<Spawner['start']>[1], 'cwd'>,
): Promise<RunningCommand> {
  const cwd = resolveCwd(home, request.cwd)
  try {
    return await spawner.start(request.command, { ...options, cwd })
  } catch (error) {
    const cwdError = request.cwd === undefined ? undefined : await findCwdError(cwd)
    throw cwdError ?? toStartError(error)
  }
}
