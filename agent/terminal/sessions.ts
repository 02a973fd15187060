// The terminal sessions of the box: their names and limits, and exited ones. All are terminated when the agent stops.
import type { FastifyBaseLogger } from 'fastify'
import type { AgentTerminalStart } from '../../shared/api/terminal.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { SURVIVED_MESSAGE } from '../exec/terminate-tree.ts'
import {
  type NamedStart,
  type RecordedSessionDeps,
  type StartedSession,
  startRecordedSession,
} from './recorded-session.ts'
import type { Session } from './session.ts'

export type SessionsDeps = RecordedSessionDeps & {
  log: FastifyBaseLogger
  /** How long an exited session stays for clients that reconnect. Default: 60 s. */
  exitedSessionMs?: number
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
  /** An exited session, until it is forgotten. */
  getExited(name: string): Session | undefined
  /** Terminates all sessions. Further calls wait for the first one. */
  close(): Promise<void>
}

const EXITED_SESSION_MS = 60_000
/** Output of exited sessions is retained in memory. */
const MAX_EXITED_SESSIONS = 16
/** The grace period after SIGHUP, and after SIGTERM, while the agent stops. */
const CLOSE_GRACE_MS = 500

type Entry = { started: Promise<StartedSession>; commandId: string | undefined }

export function createTerminalSessions(deps: SessionsDeps): TerminalSessions {
  const { log, exitedSessionMs = EXITED_SESSION_MS } = deps
  /** Sessions that run or are being started. */
  const entries = new Map<string, Entry>()
  const running = new Map<string, Session>()
  const exited = new Map<string, Session>()
  let closing: Promise<void> | undefined

  async function start(request: NamedStart): Promise<StartedSession> {
    const { session: name } = request
    const started = await startRecordedSession(request, deps)
    const { session } = started
    running.set(name, session)
    log.debug({ session: name, pid: session.pid }, 'terminal session started')
    void session.exit.then(() => {
      running.delete(name)
      entries.delete(name)
      retain(session)
    })
    return started
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

  async function terminateAll(): Promise<void> {
    const terminations = [...running.values()].map(async (session) => {
      const { survivors } = await session.kill(CLOSE_GRACE_MS)
      if (survivors.length > 0) log.warn({ session: session.name, survivors }, SURVIVED_MESSAGE)
    })
    await Promise.all(terminations)
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
    close() {
      closing ??= terminateAll()
      return closing
    },
  }
}
