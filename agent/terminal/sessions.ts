// The terminal sessions of the box: their names and limits, and exited ones. They survive the agent where each has a host.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { AgentTerminalStart } from '../../shared/api/terminal.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { SURVIVED_MESSAGE } from '../exec/terminate-tree.ts'
import { createExitRecords, type ExitedTerminal } from './exit-records.ts'
import { createExitedSessions } from './exited-sessions.ts'
import { createTerminalHosts, type TerminalHostsOptions } from './host/hosts.ts'
import {
  type NamedStart,
  type RecordedSessionDeps,
  restoreSession,
  type StartedSession,
  startRecordedSession,
} from './recorded-session.ts'
import type { Session } from './session.ts'

export type SessionsDeps = RecordedSessionDeps & {
  log: Logger
  /** How long the output of an exited session stays for clients that reconnect. Default: 60 s. */
  exitedSessionMs?: number
  /** Keeps the exits of sessions longer than their output. null: until the agent exits. Default: null. */
  exitsFile?: string | null
}

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
  /** An exited session whose output is retained. */
  getExited(name: string): Session | undefined
  /** An exited session from which this client may get the exit, as long as the exit is kept. */
  findExited(name: string, client: string | undefined): ExitedTerminal | undefined
  /** Whether a session of the name runs. */
  isRunning(name: string): boolean
  hasExited(name: string): boolean
  /** Continues the sessions of an earlier agent. Call before the other methods. */
  restore(): Promise<void>
  /** Ids of the history records of sessions that an earlier agent has started, and that run. */
  listSurviving(): string[]
  /**
   * Whether all sessions continue with the next agent. False while one has no host, or is being started.
   * @param hostVersions versions of terminal hosts that the next agent can use
   */
  canContinue(hostVersions: readonly number[]): boolean
  /** Terminates all sessions. Further calls of this function and of close() wait for the first one. */
  terminate(): Promise<void>
  /** Leaves the sessions to the next agent. Terminates those without a host. */
  close(): Promise<void>
}

const EXITED_SESSION_MS = 60_000
/** The grace period after SIGHUP, and after SIGTERM, while the agent stops. */
const CLOSE_GRACE_MS = 500

/** Opens the sessions, and continues those of an earlier agent. @param dir state directory of the sessions */
export async function openTerminalSessions({
  dir,
  spawnerKind = null,
  ...deps
}: Omit<SessionsDeps, 'hosts'> & TerminalHostsOptions): Promise<TerminalSessions> {
  const hosts = createTerminalHosts({ dir, spawnerKind, log: deps.log })
  const sessions = createTerminalSessions({ ...deps, hosts, exitsFile: join(dir, 'exits.json') })
  await sessions.restore()
  return sessions
}

type Entry = { started: Promise<StartedSession>; commandId: string | undefined; isRestored: boolean }

export function createTerminalSessions(deps: SessionsDeps): TerminalSessions {
  const { log, clock, exitedSessionMs = EXITED_SESSION_MS, exitsFile = null } = deps
  /** Sessions that run or are being started. */
  const entries = new Map<string, Entry>()
  const running = new Map<string, Session>()
  const exited = createExitedSessions(exitedSessionMs, createExitRecords({ file: exitsFile, clock, log }))
  let closing: Promise<void> | undefined

  async function start(request: NamedStart): Promise<StartedSession> {
    const { session: name } = request
    const started = await startRecordedSession(request, deps)
    const { session } = started
    addRunning(session)
    log.debug({ session: name, pid: session.pid }, 'terminal session started')
    return started
  }

  function addRunning(session: Session): void {
    running.set(session.name, session)
    void session.exit.then(() => {
      running.delete(session.name)
      entries.delete(session.name)
      exited.add(session)
    })
  }

  function addRestored(started: StartedSession): void {
    const { session, commandId } = started
    if (session.hasExited()) {
      exited.add(session)
      return
    }
    if (entries.has(session.name)) {
      // The user of the box has copied the directory of a session.
      void terminate(session)
      return
    }
    entries.set(session.name, { started: Promise.resolve(started), commandId, isRestored: true })
    addRunning(session)
  }

  /** The lowest number that neither a running nor an exited session has. */
  function pickName(): string {
    for (let number = 1; ; number++) {
      const name = String(number)
      if (!entries.has(name) && exited.get(name) === undefined) return name
    }
  }

  async function terminate(session: Session): Promise<void> {
    const { survivors } = await session.kill(CLOSE_GRACE_MS)
    if (survivors.length > 0) log.warn({ session: session.name, survivors }, SURVIVED_MESSAGE)
    // A survivor keeps its host, which exits with it.
    else await session.exit
  }

  async function closeAll(mayContinue: boolean): Promise<void> {
    // New sessions are refused by now.
    await Promise.allSettled([...entries.values()].map(({ started }) => started))
    const continues = (session: Session) => mayContinue && session.disconnect()
    await Promise.all([...running.values()].filter((session) => !continues(session)).map(terminate))
    await exited.close(continues)
  }

  return {
    async start(request) {
      const { record } = request
      for (const { started, commandId } of entries.values())
        if (record !== undefined && commandId === record.commandId) return started
      const name = request.session ?? pickName()
      const existing = entries.get(name)
      if (existing !== undefined) {
        // The client attaches to the session next, which must run by then.
        await existing.started.catch(() => undefined)
        throw new ApiError(
          'invalid_request',
          `The session ${name} is already in use. Attach to it, or choose another name.`,
        )
      }
      if (entries.size >= LIMITS.terminalSessions)
        throw new ApiError(
          'invalid_request',
          `The box has ${LIMITS.terminalSessions} terminal sessions. Close one first.`,
        )
      const started = start({ ...request, session: name })
      entries.set(name, { started, commandId: record?.commandId, isRestored: false })
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
    findExited: (name, client) => exited.find(name, client),
    isRunning: (name) => running.has(name),
    hasExited: (name) => exited.has(name),
    async restore() {
      const hosted = (await deps.hosts?.restore()) ?? []
      const restored = await Promise.all(hosted.map((session) => restoreSession(session, deps)))
      for (const started of restored) addRestored(started)
      if (restored.length > 0) log.info({ sessions: restored.length }, 'terminal sessions restored')
    },
    listSurviving: () =>
      [...entries.values()]
        .flatMap(({ isRestored, commandId = null }) => (isRestored && commandId !== null ? [commandId] : []))
        .slice(0, LIMITS.terminalSessions),
    canContinue: (hostVersions) =>
      [...entries.keys()].every((name) => {
        const version = running.get(name)?.hostVersion ?? null
        return version !== null && hostVersions.includes(version)
      }),
    terminate() {
      closing ??= closeAll(false)
      return closing
    },
    close() {
      closing ??= closeAll(true)
      return closing
    },
  }
}
