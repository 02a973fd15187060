// Starts terminal sessions of a box, and attaches to them.
import type { WebSocket } from 'ws'
import {
  LOGIN_SHELL_COMMAND,
  type TerminalList,
  type TerminalQuery,
  type TerminalStart,
} from '../../shared/api/terminal.ts'
import { ApiError } from '../../shared/errors.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import { getBoxVariables } from '../boxes/variables.ts'
import type { RouteInput, RouteSchemas } from '../http/route.ts'
import type { AcquiredBox } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { openDialBack } from './open-dial-back.ts'
import { repeatWhileUnreachable } from './repeat-request.ts'
import { requestAgent } from './request-agent.ts'
import type { AgentResponse } from './response-parser.ts'

export const SESSION_LIST = { method: 'GET', path: '/terminal/sessions', type: 'terminal.list' } as const

/** Limits all attempts to start a session together. */
const START_TIMEOUT_MS = 30_000

type StartInput = Pick<RouteInput<RouteSchemas>, 'actor' | 'request'>
type Attachment = { agent: WebSocket; session: string }

/** Starts a session once, also when the tunnel closes before the response. */
export async function startSession(
  context: EdgeContext,
  { actor, request }: StartInput,
  acquired: AcquiredBox,
  fields: TerminalStart,
): Promise<AgentResponse & { session: string }> {
  const { box } = acquired
  const command = {
    boxId: box.id,
    actor,
    mode: 'sync',
    respondsAt: 'start',
    fromCli: request.headers[CLI_VERSION_HEADER] !== undefined,
    command: fields.command ?? LOGIN_SHELL_COMMAND,
    cwd: fields.cwd,
  } as const
  const boxEnv = getBoxVariables(box)
  return context.commandTracker.track(command, async ({ record, acceptResponse }) => {
    const body = JSON.stringify({ ...fields, boxEnv, record })
    return repeatWhileUnreachable(context.tunnels, acquired, START_TIMEOUT_MS, async (tunnel, signal) => {
      const started = await requestAgent(
        context,
        { tunnel, signal },
        {
          method: 'POST',
          path: '/terminal/sessions',
          body,
          type: 'terminal.started',
          timeoutMs: START_TIMEOUT_MS,
        },
      )
      const { session } = started
      if (session === undefined || (fields.session !== undefined && session !== fields.session))
        throw createAgentProtocolError('The agent responded for a different session.')
      acceptResponse(started)
      return { ...started, session }
    })
  })
}

/** A client with an offset reconnects: it must not get a new session. */
export const mayCreateSession = ({ create = 'auto', offset }: TerminalQuery): boolean =>
  create === 'auto' && offset === undefined

/**
 * Attaches to the session of the query, else to a new one. A client that must not get a new session attaches to the newest.
 * Two clients that create a session with the same name get the same session.
 * @throws ApiError not_found
 */
export async function attachToSession(
  context: EdgeContext,
  input: StartInput,
  acquired: AcquiredBox,
  query: TerminalQuery,
): Promise<Attachment> {
  const { session } = query
  const open = (name: string, isNew = false) => openAttachment(context, acquired, name, query, isNew)
  const startNew = async () => {
    const { cols, rows, term } = query
    const started = await startSession(context, input, acquired, { session, cols, rows, term })
    return open(started.session, true)
  }
  if (!mayCreateSession(query)) return open(session ?? (await findNewest(context, acquired)))
  if (session === undefined) return startNew()
  try {
    return await open(session)
  } catch (error) {
    if (!hasCode(error, 'not_found')) throw error
  }
  try {
    return await startNew()
  } catch (startError) {
    if (!hasCode(startError, 'invalid_request')) throw startError
    // Another client has created the session, or the request is not valid.
    return open(session).catch((error: unknown) => {
      throw hasCode(error, 'not_found') ? startError : error
    })
  }
}

async function openAttachment(
  { sockets }: EdgeContext,
  acquired: AcquiredBox,
  session: string,
  query: TerminalQuery,
  isNew: boolean,
): Promise<Attachment> {
  const { client, offset, cols, rows } = query
  const exited = isNew || !mayCreateSession(query)
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries({ isNew, exited, client, offset, cols, rows }))
    if (value !== undefined) parameters.set(name, String(value))
  const path = `/terminal/sessions/${session}/attach?${parameters}`
  return { agent: await openDialBack(sockets, acquired, { path }), session }
}

/** @throws ApiError not_found */
async function findNewest(context: EdgeContext, acquired: AcquiredBox): Promise<string> {
  const { json } = await requestAgent(context, acquired, SESSION_LIST)
  const { sessions } = JSON.parse(json.toString()) as TerminalList
  const [newest] = sessions
  if (newest === undefined)
    throw new ApiError('not_found', 'The box has no terminal session. Attach with create=auto to start one.')
  return newest.session
}

const hasCode = (error: unknown, code: string): boolean => error instanceof ApiError && error.code === code
