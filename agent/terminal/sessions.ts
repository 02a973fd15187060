// The terminal sessions of the box: starts, finds, lists and closes them, and records them in the command history.
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { type AgentTerminalStart, LOGIN_SHELL_COMMAND } from '../../shared/api/terminal.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import { PROCESS_ID_VARIABLE } from '../exec/environment.ts'
import type { SyncRecorder } from '../exec/history/sync-recorder.ts'
import { createOutputTail } from '../exec/output-tail.ts'
import { SHELL, shellArguments } from '../exec/shell.ts'
import { SURVIVED_MESSAGE } from '../exec/terminate-tree.ts'
import { findCwdError, resolveCwd } from '../exec/working-directory.ts'
import type { ActivityTracker } from '../vitals/activity-tracker.ts'
import type { Session } from './session.ts'

export type SessionsDeps = {
  home: string
  baseEnv: Record<string, string>
  clock: Clock
  log: FastifyBaseLogger
  activity: ActivityTracker
  /** Absent: sessions are not recorded in the history. */
  recorder?: SyncRecorder | undefined
  /** How long an exited session stays for clients that reconnect. Default: 60 s. */
  exitedSessionMs?: number
}

export type StartedSession = { session: Session; commandId: string | undefined }

export type TerminalSessions = {
  /**
   * Returns the same session when the request is repeated with the same record.
   * @throws ApiError invalid_request for a name that is in use and for too many sessions; not_found, invalid_path or
   * permission_denied for an unusable cwd; exec_failed
   */
  start(request: AgentTerminalStart): Promise<StartedSession>
  /** Running sessions, newest first. */
  list(): Session[]
  /** @throws ApiError not_found */
  get(name: string): Session
  /** An exited session, until it is forgotten. */
  getExited(name: string): Session | undefined
  /** Terminates all sessions. */
  close(): Promise<void>
}

const EXITED_SESSION_MS = 60_000
/** Output of exited sessions is retained in memory. */
const MAX_EXITED_SESSIONS = 16
/** After SIGHUP, and after SIGTERM, while the agent stops. */
const CLOSE_GRACE_MS = 500
const DEFAULT_SIZE = { cols: 80, rows: 24 }
const DEFAULT_TERM = 'xterm-256color'

type Entry = { started: Promise<StartedSession>; commandId: string | undefined }
type NamedStart = AgentTerminalStart & { session: string }

export function createTerminalSessions(deps: SessionsDeps): TerminalSessions {
  const { home, baseEnv, clock, log, activity, recorder, exitedSessionMs = EXITED_SESSION_MS } = deps
  /** Sessions that run or are being started. */
  const entries = new Map<string, Entry>()
  const running = new Map<string, Session>()
  const exited = new Map<string, Session>()

  async function start(request: NamedStart): Promise<StartedSession> {
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
        ? { file: await findLoginShell(baseEnv.SHELL), args: ['-l'] }
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
        env: {
          ...baseEnv,
          TERM: DEFAULT_TERM,
          COLORTERM: 'truecolor',
          ...request.boxEnv,
          ...request.env,
          ...(request.term !== undefined && { TERM: request.term }),
          PWD: cwd,
          [PROCESS_ID_VARIABLE]: processId,
        },
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
      running.delete(name)
      entries.delete(name)
      retain(session)
    })
    running.set(name, session)
    log.debug({ session: name, pid: session.pid }, 'terminal session started')
    return { session, commandId: recording?.commandId }
  }

  /** The lowest number that neither a running nor an exited session has. */
  function pickName(): string {
    for (let number = 1; ; number++) {
      const name = String(number)
      if (!entries.has(name) && !exited.has(name)) return name
    }
  }

  function retain(session: Session): void {
    exited.delete(session.name)
    exited.set(session.name, session)
    const [oldest] = exited.keys()
    if (exited.size > MAX_EXITED_SESSIONS && oldest !== undefined) exited.delete(oldest)
    setTimeout(() => {
      if (exited.get(session.name) === session) exited.delete(session.name)
    }, exitedSessionMs).unref()
  }

  return {
    start(request) {
      const { record } = request
      for (const { started, commandId } of entries.values())
        if (record !== undefined && commandId === record.commandId) return started
      const name = request.session ?? pickName()
      if (entries.has(name))
        throw new ApiError(
          'invalid_request',
          `The session ${name} is already in use. Attach to it, or choose another name.`,
        )
      if (entries.size >= LIMITS.terminalSessions)
        throw new ApiError(
          'invalid_request',
          `The box has ${LIMITS.terminalSessions} terminal sessions. Close one first.`,
        )
      const started = start({ ...request, session: name })
      entries.set(name, { started, commandId: record?.commandId })
      started.catch(() => entries.delete(name))
      return started
    },
    list: () => [...running.values()].reverse(),
    get(name) {
      const session = running.get(name)
      if (session === undefined)
        throw new ApiError('not_found', `Session ${name} not found. It may have exited.`)
      return session
    },
    getExited: (name) => exited.get(name),
    async close() {
      const terminations = [...running.values()].map(async (session) => {
        const { survivors } = await session.kill(CLOSE_GRACE_MS)
        if (survivors.length > 0) log.warn({ session: session.name, survivors }, SURVIVED_MESSAGE)
      })
      await Promise.all(terminations)
    },
  }
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
