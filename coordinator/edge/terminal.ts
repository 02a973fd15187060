// Terminal sessions of a box: start, attach, list, kill.
import { attachMessageSchema } from '../../shared/api/attach.ts'
import {
  sessionNameSchema,
  terminalKilledSchema,
  terminalListSchema,
  terminalQuerySchema,
  terminalStartedSchema,
  terminalStartSchema,
} from '../../shared/api/terminal.ts'
import { ApiError } from '../../shared/errors.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import {
  ACQUIRE_ERRORS,
  acquireBox,
  boxParams,
  CWD_DENIED,
  INVALID_CWD,
  NO_BOX_OR_CWD,
  WAKE_ERRORS,
} from './acquire-box.ts'
import type { AttachmentRelay } from './attach.ts'
import type { EdgeContext } from './context.ts'
import { forwardRequest } from './request-agent.ts'
import { attachToSession, mayCreateSession, SESSION_LIST, startSession } from './terminal-sessions.ts'

const sessionParams = boxParams.extend({ session: sessionNameSchema })

/** Covers SIGHUP, SIGTERM and SIGKILL with their grace periods, and the scans of the process table. */
const KILL_TIMEOUT_MS = 60_000

export function terminalRoutes(context: EdgeContext, relay: AttachmentRelay): Route[] {
  return [
    route({
      id: 'terminals.start',
      method: 'POST',
      path: '/terminal/sessions',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Start a terminal session',
      description: 'Wakes a suspended box and waits for it. The session runs until its program exits.',
      request: { params: boxParams, body: terminalStartSchema },
      responses: { 200: terminalStartedSchema },
      errors: [...WAKE_ERRORS, 'invalid_request', 'invalid_path', 'permission_denied'],
      errorDescriptions: {
        invalid_path: INVALID_CWD,
        not_found: NO_BOX_OR_CWD,
        permission_denied: CWD_DENIED,
      },
      async handler(input) {
        const acquired = await acquireBox(context, input, { wakesBox: true })
        const { json } = await startSession(context, input, acquired, input.body)
        return input.reply.type('application/json; charset=utf-8').send(json)
      },
    }),
    route({
      id: 'terminals.list',
      method: 'GET',
      path: '/terminal/sessions',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'List running terminal sessions, newest first',
      request: { params: boxParams },
      responses: { 200: terminalListSchema },
      errors: ACQUIRE_ERRORS,
      handler: (input) => forwardRequest(context, input, SESSION_LIST),
    }),
    route({
      id: 'terminals.kill',
      method: 'DELETE',
      path: '/terminal/sessions/:session',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Terminate the programs of a terminal session',
      description: 'Sends SIGHUP, then SIGTERM, then SIGKILL.',
      request: { params: sessionParams },
      responses: { 200: terminalKilledSchema },
      errors: ACQUIRE_ERRORS,
      handler(input) {
        const { session } = input.params
        return forwardRequest(context, input, {
          method: 'DELETE',
          path: `/terminal/sessions/${session}`,
          type: 'terminal.killed',
          session,
          timeoutMs: KILL_TIMEOUT_MS,
        })
      },
    }),
    route({
      id: 'terminals.attach',
      method: 'GET',
      path: '/terminal',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Attach to a terminal session, or start one, over a WebSocket',
      description:
        'Wakes a suspended box, except with create=never or offset. To resume after a ' +
        'disconnect, connect again with session, client and the offset of the received output.',
      request: { params: boxParams, query: terminalQuerySchema },
      isWebSocket: true,
      responses: { 101: attachMessageSchema },
      errors: [...WAKE_ERRORS, 'invalid_request', 'customer_session_limit'],
      async handler(input) {
        const { query, reply } = input
        if (context.closing.aborted) throw new ApiError('control_plane_unavailable')
        const acquired = await acquireBox(context, input, {
          kind: 'terminal',
          wakesBox: mayCreateSession(query),
        })
        const { agent, session } = await attachToSession(context, input, acquired, query)
        await context.recordConnect(input.actor, acquired.box.id, session).catch((error: unknown) => {
          agent.terminate()
          throw error
        })
        if (query.client !== undefined) acquired.setResumable()
        await relay(input, agent, acquired)
        return reply
      },
    }),
  ]
}
