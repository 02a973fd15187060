// Routes of terminal sessions.
import type { Logger } from 'pino'
import {
  agentAttachQuerySchema,
  agentTerminalStartSchema,
  type TerminalKilled,
  type TerminalList,
  type TerminalStarted,
} from '../../shared/api/terminal.ts'
import { ApiError } from '../../shared/errors.ts'
import type { AttachDialer } from '../attach/attach-dialer.ts'
import { assertEnvironment } from '../exec/environment.ts'
import { SURVIVED_MESSAGE } from '../exec/terminate-tree.ts'
import { readDialBackId } from '../requests/dial-back-id.ts'
import { EMPTY_RESPONSE, type JsonRouter, RequestResetError } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import type { ExitedTerminal } from './exit-records.ts'
import type { TerminalSessions } from './sessions.ts'

export type TerminalDeps = {
  sessions: TerminalSessions
  attachDialer: Pick<AttachDialer, 'connect'>
  log: Logger
  /** When it aborts, new sessions are refused. */
  stopping: AbortSignal
}

export function terminalRoutes(
  router: JsonRouter,
  { sessions, attachDialer, log, stopping }: TerminalDeps,
): void {
  router.add('POST', '/terminal/sessions', async (request) => {
    if (stopping.aborted) throw new RequestResetError()
    const body = validateRequest(agentTerminalStartSchema, request.body)
    assertEnvironment(body.boxEnv)
    assertEnvironment(body.env)
    const { session, commandId } = await sessions.start(body)
    const fields = { ...session.describe(), ...(commandId !== undefined && { commandId }) }
    return { ok: true, type: 'terminal.started', ...fields } satisfies TerminalStarted
  })

  router.add('GET', '/terminal/sessions', (): TerminalList => {
    return { ok: true, type: 'terminal.list', sessions: sessions.list().map((session) => session.describe()) }
  })

  router.add('DELETE', '/terminal/sessions/:session', async ({ params }): Promise<TerminalKilled> => {
    const name = params.session
    // A repeated request has no effect.
    if (!sessions.isRunning(name) && sessions.hasExited(name))
      return { ok: true, type: 'terminal.killed', session: name, signal: null }
    const session = sessions.get(name)
    const { signal, survivors } = await session.kill()
    if (survivors.includes(session.pid)) throw new ApiError('exec_failed', SURVIVED_MESSAGE)
    await session.exit
    return { ok: true, type: 'terminal.killed', session: session.name, signal }
  })

  router.add('GET', '/terminal/sessions/:session/attach', (request) => {
    const { client, offset, cols, rows, isNew, exited } = validateRequest(
      agentAttachQuerySchema,
      request.query,
      {
        root: 'query',
      },
    )
    const { session: name } = request.params
    const id = readDialBackId(request.headers)
    const mayFetchExit = (session: ExitedTerminal): boolean => {
      // A client whose connection failed before the screen was complete has no offset.
      if (client !== undefined && session.hadClient(client)) return offset !== undefined || exited === 'true'
      return exited === 'true' && !session.hadClient() && !isReplaced(session)
    }
    /** A session whose output is forgotten, of a name that another session has now. */
    const isReplaced = (session: ExitedTerminal) =>
      session !== sessions.getExited(name) && sessions.isRunning(name)
    const exitedSession = sessions.findExited(name, client)
    const session = exitedSession && mayFetchExit(exitedSession) ? exitedSession : sessions.get(name)
    const size = cols === undefined || rows === undefined ? undefined : { cols, rows }
    attachDialer
      .connect(id)
      .then((socket) => session.attach(socket, { client, offset, size, isNew: isNew === 'true' }))
      // A disconnect of the client has this effect too.
      .catch((err: unknown) => log.debug({ err, session: name }, 'terminal client disconnected early'))
    return EMPTY_RESPONSE
  })
}
