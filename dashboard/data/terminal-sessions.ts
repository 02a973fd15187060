// The terminal sessions of a box over the API.
import { createError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type {
  TerminalKilled,
  TerminalList,
  TerminalSession,
  TerminalStart,
  TerminalStarted,
} from '../../shared/api/terminal.ts'
import { getBoxClient } from './box-clients.ts'
import { navigate } from './navigation.ts'
import { formatBoxPath } from './routes.ts'

export const formatSessionPath = (boxName: string, session: string): string =>
  `${formatBoxPath(boxName, 'terminals')}?session=${encodeURIComponent(session)}`

/** The functions reject with BoxwoodError. */
export const listSessions = async (boxId: string): Promise<TerminalSession[]> =>
  (await getBoxClient(boxId).send<TerminalList>('GET', 'terminal/sessions')).sessions

/** Starts a session, and opens its page. Wakes a suspended box. */
export async function openNewSession({ id, hostname }: Box, request: TerminalStart): Promise<void> {
  const { session } = await getBoxClient(id).send<TerminalStarted>('POST', 'terminal/sessions', {
    body: request,
  })
  navigate(formatSessionPath(hostname, session))
}

export const endSession = (boxId: string, session: string): Promise<TerminalKilled> =>
  getBoxClient(boxId).send<TerminalKilled>('DELETE', `terminal/sessions/${encodeURIComponent(session)}`)

export async function checkSession(boxId: string, session: string): Promise<void> {
  const sessions = await listSessions(boxId)
  if (!sessions.some((other) => other.session === session))
    throw createError({ code: 'not_found', message: `The session ${session} has ended.`, status: 404 })
}
