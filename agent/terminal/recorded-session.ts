// Starts a terminal session with the environment of the box, or restores one, and records it in the command history.

import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AgentTerminalStart, LOGIN_SHELL_COMMAND } from '../../shared/api/terminal.ts'
import type { Clock } from '../../shared/clock.ts'
import { newId } from '../../shared/ids.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import type { CreateEnvironment } from '../exec/environment.ts'
import type { SyncRecorder } from '../exec/history/sync-recorder.ts'
import { createOutputTail } from '../exec/output-tail.ts'
import { SHELL, shellArguments } from '../exec/shell.ts'
import { findCwdError, resolveCwd } from '../exec/working-directory.ts'
import { PROCESS_ID_VARIABLE } from '../process-table.ts'
import type { SessionMetadata } from './host/directory.ts'
import type { HostedSession, TerminalHosts } from './host/hosts.ts'
import { type Pty, type PtyOptions, startPty } from './pty.ts'
import type { Session, SessionOptions } from './session.ts'

export type RecordedSessionDeps = {
  home: string
  createEnv: CreateEnvironment
  clock: Clock
  activity: ActivityTracker
  /** null: sessions end with the agent. */
  hosts: TerminalHosts | null
  /** Absent: sessions are not recorded in the history. */
  recorder?: SyncRecorder | undefined
}

export type NamedStart = AgentTerminalStart & { session: string }
export type StartedSession = { session: Session; commandId: string | undefined }

const DEFAULT_SIZE = { cols: 80, rows: 24 }
/** A host that does not send what it holds does not delay the start of the agent any longer. */
const RESTORE_TIMEOUT_MS = 5_000
const DEFAULT_TERM = 'xterm-256color'

/** @throws ApiError not_found, invalid_path or permission_denied for an unusable cwd; exec_failed */
export async function startRecordedSession(
  request: NamedStart,
  deps: RecordedSessionDeps,
): Promise<StartedSession> {
  const { home, createEnv, clock, recorder, hosts } = deps
  const cwd = resolveCwd(home, request.cwd)
  // node-pty reports an unusable directory only on the terminal.
  const cwdError = request.cwd === undefined ? undefined : await findCwdError(cwd)
  if (cwdError !== undefined) throw cwdError
  const { createSession } = await loadSession()
  const { command, cols, rows } = request
  const processId = newId('process')
  const program =
    command === undefined
      ? { file: await findLoginShell(createEnv().SHELL), args: ['-l'] }
      : { file: SHELL, args: shellArguments(command) }
  const startedAt = clock.now()
  const metadata = {
    session: request.session,
    command,
    cwd: request.cwd,
    record: request.record,
    startedAt,
  }
  const options: PtyOptions = {
    ...program,
    cwd,
    cols: cols ?? DEFAULT_SIZE.cols,
    rows: rows ?? DEFAULT_SIZE.rows,
    env: createEnv({ TERM: DEFAULT_TERM, COLORTERM: 'truecolor' }, request.boxEnv, request.env, {
      ...(request.term !== undefined && { TERM: request.term }),
      PWD: cwd,
      [PROCESS_ID_VARIABLE]: processId,
    }),
  }
  let hosted: HostedSession | null
  let pty: Pty
  try {
    hosted = (await hosts?.start(processId, metadata, options)) ?? null
    pty = hosted?.pty ?? startPty(options)
  } catch (error) {
    const failed = { status: 'failed', exitCode: null, signal: null, finishedAt: clock.now() } as const
    void recorder?.start(getRecorded(metadata), null, startedAt)?.finish(failed, NO_OUTPUT)
    throw error
  }
  const opened = { pty, processId, metadata, size: options, markRecorded: () => hosted?.markRecorded() }
  return recordSession(opened, createSession, deps)
}

/** Continues a session of an earlier agent. Resolves when its output has been read. */
export async function restoreSession(
  hosted: HostedSession,
  deps: RecordedSessionDeps,
): Promise<StartedSession> {
  const { pty, isRecorded } = hosted
  const size = pty.host?.size ?? DEFAULT_SIZE
  const recorder = isRecorded ? undefined : deps.recorder
  const { createSession } = await loadSession()
  const started = recordSession({ ...hosted, size }, createSession, { ...deps, recorder })
  await Promise.race([started.session.restored, sleep(RESTORE_TIMEOUT_MS, undefined, { ref: false })])
  return started
}

/** Loads xterm, which an agent without terminals does not need. */
const loadSession = () => import('./session.ts')

type OpenSession = Pick<HostedSession, 'pty' | 'processId' | 'metadata' | 'markRecorded'> & {
  size: { cols: number; rows: number }
}

function recordSession(
  { pty, processId, metadata, size, markRecorded }: OpenSession,
  createSession: (options: SessionOptions) => Session,
  { clock, activity, recorder }: RecordedSessionDeps,
): StartedSession {
  const { startedAt, command = null } = metadata
  const session = createSession({
    pty,
    name: metadata.session,
    processId,
    command,
    size: { cols: size.cols, rows: size.rows },
    startedAt,
    clock,
    onActivity: activity.touch,
  })
  // The coordinator ignores a second report of the start.
  const recording = recorder?.start(getRecorded(metadata), session.pid, startedAt) ?? null
  const unwatch = activity.watch(session.isInUse)
  void session.exit.then(({ exitCode, signal }) => {
    unwatch()
    activity.touch()
    const status = signal === null ? 'exited' : 'killed'
    const finishedAt = session.finishedAt() ?? clock.now()
    void recording?.finish({ status, exitCode, signal, finishedAt }, NO_OUTPUT).then((isStored) => {
      // On a full disk the next agent records the exit.
      if (isStored) markRecorded()
    })
  })
  return { session, commandId: recording?.commandId }
}

const NO_OUTPUT = { stdout: createOutputTail(0), stderr: createOutputTail(0) }

const getRecorded = ({ record, command, cwd }: SessionMetadata) => ({
  record,
  command: command ?? LOGIN_SHELL_COMMAND,
  cwd,
})

/** The user's shell, or /bin/sh for a user whose shell does not exist or only refuses logins. */
async function findLoginShell(shell: string | undefined): Promise<string> {
  if (shell === undefined || ['nologin', 'false'].includes(basename(shell))) return SHELL
  const isExecutable = await stat(shell).then(
    (stats) => stats.isFile() && (stats.mode & 0o111) !== 0,
    () => false,
  )
  return isExecutable ? shell : SHELL
}
