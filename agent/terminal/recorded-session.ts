// Starts a terminal session with the environment of the box, and records it in the command history.
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { type AgentTerminalStart, LOGIN_SHELL_COMMAND } from '../../shared/api/terminal.ts'
import type { Clock } from '../../shared/clock.ts'
import { newId } from '../../shared/ids.ts'
import { type CreateEnvironment, PROCESS_ID_VARIABLE } from '../exec/environment.ts'
import type { SyncRecorder } from '../exec/history/sync-recorder.ts'
import { createOutputTail } from '../exec/output-tail.ts'
import { SHELL, shellArguments } from '../exec/shell.ts'
import { findCwdError, resolveCwd } from '../exec/working-directory.ts'
import type { ActivityTracker } from '../vitals/activity-tracker.ts'
import type { Session } from './session.ts'

export type RecordedSessionDeps = {
  home: string
  createEnv: CreateEnvironment
  clock: Clock
  activity: ActivityTracker
  /** Absent: sessions are not recorded in the history. */
  recorder?: SyncRecorder | undefined
}

export type NamedStart = AgentTerminalStart & { session: string }
export type StartedSession = { session: Session; commandId: string | undefined }

const DEFAULT_SIZE = { cols: 80, rows: 24 }
const DEFAULT_TERM = 'xterm-256color'

/** @throws ApiError not_found, invalid_path or permission_denied for an unusable cwd; exec_failed */
export async function startRecordedSession(
  request: NamedStart,
  { home, createEnv, clock, activity, recorder }: RecordedSessionDeps,
): Promise<StartedSession> {
  const cwd = resolveCwd(home, request.cwd)
  // node-pty reports an unusable directory only on the terminal.
  const cwdError = request.cwd === undefined ? undefined : await findCwdError(cwd)
  if (cwdError !== undefined) throw cwdError
  const { session: name, command, cols, rows } = request
  // Loads xterm, which an agent without terminals does not need.
  const { startSession } = await import('./session.ts')
  const processId = newId('process')
  const program =
    command === undefined
      ? { file: await findLoginShell(createEnv().SHELL), args: ['-l'] }
      : { file: SHELL, args: shellArguments(command) }
  const startedAt = clock.now()
  const recorded = { record: request.record, command: command ?? LOGIN_SHELL_COMMAND, cwd: request.cwd }
  const noOutput = { stdout: createOutputTail(0), stderr: createOutputTail(0) }
  let session: Session
  try {
    session = startSession({
      ...program,
      name,
      processId,
      cwd,
      clock,
      command: command ?? null,
      cols: cols ?? DEFAULT_SIZE.cols,
      rows: rows ?? DEFAULT_SIZE.rows,
      env: createEnv({ TERM: DEFAULT_TERM, COLORTERM: 'truecolor' }, request.boxEnv, request.env, {
        ...(request.term !== undefined && { TERM: request.term }),
        PWD: cwd,
        [PROCESS_ID_VARIABLE]: processId,
      }),
      onActivity: activity.touch,
    })
  } catch (error) {
    const failed = { status: 'failed', exitCode: null, signal: null, finishedAt: clock.now() } as const
    recorder?.start(recorded, null, startedAt)?.finish(failed, noOutput)
    throw error
  }
  const recording = recorder?.start(recorded, session.pid, startedAt) ?? null
  const unwatch = activity.watch(session.isInUse)
  void session.exit.then(({ exitCode, signal }) => {
    unwatch()
    activity.touch()
    const status = signal === null ? 'exited' : 'killed'
    recording?.finish({ status, exitCode, signal, finishedAt: clock.now() }, noOutput)
  })
  return { session, commandId: recording?.commandId }
}

/** The user's shell, or /bin/sh for a user whose shell does not exist or only refuses logins. */
async function findLoginShell(shell: string | undefined): Promise<string> {
  if (shell === undefined || ['nologin', 'false'].includes(basename(shell))) return SHELL
  const isExecutable = await stat(shell).then(
    (stats) => stats.isFile() && (stats.mode & 0o111) !== 0,
    () => false,
  )
  return isExecutable ? shell : SHELL
}
