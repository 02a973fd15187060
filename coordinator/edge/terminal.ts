// Terminal sessions of a box: start, attach, list, kill.
import type { WebSocket } from 'ws'
import {
  LOGIN_SHELL_COMMAND,
  sessionNameSchema,
  type TerminalList,
  type TerminalQuery,
  type TerminalStart,
  terminalKilledSchema,
  terminalListSchema,
  terminalQuerySchema,
  terminalStartedSchema,
  terminalStartSchema,
} from '../../shared/api/terminal.ts'
import { ApiError } from '../../shared/errors.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { parseEnvVars } from '../boxes/present.ts'
import { byKey } from '../http/access.ts'
import { type Route, type RouteInput, type RouteSchemas, route } from '../http/route.ts'
import { createAgentProtocolError } from '../tunnel/read-response.ts'
import { ACQUIRE_ERRORS, type AcquiredBox, acquireBox, boxParams } from './acquire-box.ts'
import { readAgentResponse } from './agent-response.ts'
import type { AttachmentRelay } from './attach.ts'
import type { EdgeContext } from './context.ts'
import { openDialBack } from './open-dial-back.ts'
import { repeatWhileUnreachable } from './repeat-request.ts'
import { forwardRequest, requestAgent } from './request-agent.ts'
import type { AgentResponse } from './response-parser.ts'

const sessionParams = boxParams.extend({ session: sessionNameSchema })

const SESSION_LIST = { method: 'GET', path: '/terminal/sessions', type: 'terminal.list' } as const

/** For all attempts to start a session together. */
const START_TIMEOUT_MS = 30_000
/** Covers SIGHUP, SIGTERM and SIGKILL with their grace periods, and the scans of the process table. */
const KILL_TIMEOUT_MS = 60_000

type StartInput = Pick<RouteInput<RouteSchemas>, 'actor' | 'request'>

export function terminalRoutes(context: EdgeContext, relay: AttachmentRelay): Route[] {
  /** Starts a session once, also when the tunnel closes before the response. */
  async function start(
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
    const boxEnv = Object.fromEntries(parseEnvVars(box).map(({ name, value }) => [name, value]))
    return context.commandTracker.track(command, async ({ record, acceptResponse }) => {
      const body = Buffer.from(JSON.stringify({ ...fields, boxEnv, record }))
      const headers = { 'content-type': 'application/json' }
      const { tunnels, responseParser } = context
      return repeatWhileUnreachable(tunnels, acquired, START_TIMEOUT_MS, async (tunnel, signal) => {
        const response = await tunnel.request({
          method: 'POST',
          path: '/terminal/sessions',
          headers,
          body,
          signal,
        })
        const started = await readAgentResponse(responseParser, response, 'terminal.started')
        const { session } = started
        if (session === undefined || (fields.session !== undefined && session !== fields.session))
          throw createAgentProtocolError('The agent responded for a different session.')
        acceptResponse(started)
        return { ...started, session }
      })
    })
  }

  /** @throws ApiError not_found */
  async function findNewest(acquired: AcquiredBox): Promise<string> {
    const { json } = await requestAgent(context, acquired, SESSION_LIST)
    const { sessions } = JSON.parse(json.toString()) as TerminalList
    const [newest] = sessions
    if (newest === undefined)
      throw new ApiError(
        'not_found',
        'The box has no terminal session. Attach with create=auto to start one.',
      )
    return newest.session
  }

  /** A client with an offset reconnects: it must not get a new session. */
  const mayCreate = ({ create = 'auto', offset }: TerminalQuery) => create === 'auto' && offset === undefined

  /** Two clients that create a session with the same name get the same session. */
  async function attach(
    input: StartInput,
    acquired: AcquiredBox,
    query: TerminalQuery,
  ): Promise<{ agent: WebSocket; session: string }> {
    const { client, offset, cols, rows, term } = query
    const open = async (session: string, isNew: boolean) => {
      const exited = isNew || !mayCreate(query)
      const parameters = new URLSearchParams()
      for (const [name, value] of Object.entries({ isNew, exited, client, offset, cols, rows }))
        if (value !== undefined) parameters.set(name, String(value))
      const path = `/terminal/sessions/${session}/attach?${parameters}`
      return { agent: await openDialBack(context.sockets, acquired, { path }), session }
    }
    const startNew = async (session?: string) => {
      const fields = { session, cols, rows, term }
      return open((await start(input, acquired, fields)).session, true)
    }
    if (!mayCreate(query)) return open(query.session ?? (await findNewest(acquired)), false)
    const { session } = query
    if (session === undefined) return startNew()
    try {
      return await open(session, false)
    } catch (error) {
      if (!hasCode(error, 'not_found')) throw error
    }
    try {
      return await startNew(session)
    } catch (startError) {
      if (!hasCode(startError, 'invalid_request')) throw startError
      // Another client has created the session, or the request is not valid.
      return open(session, false).catch((error: unknown) => {
        throw hasCode(error, 'not_found') ? startError : error
      })
    }
  }

  return [
    route({
      method: 'POST',
      path: '/terminal/sessions',
      access: byKey('boxes', 'write'),
      summary: 'Start a terminal session',
      description: 'Wakes a suspended box and waits for it. The session runs until its program exits.',
      request: { params: boxParams, body: terminalStartSchema },
      responses: { 200: terminalStartedSchema },
      errors: [...ACQUIRE_ERRORS, 'invalid_request', 'invalid_path', 'permission_denied'],
      async handler(input) {
        const acquired = await acquireBox(context, input, { wakesBox: true })
        const { json } = await start(input, acquired, input.body)
        return input.reply.type('application/json; charset=utf-8').send(json)
      },
    }),
    route({
      method: 'GET',
      path: '/terminal/sessions',
      access: byKey('boxes', 'read'),
      summary: 'List running terminal sessions, newest first',
      request: { params: boxParams },
      responses: { 200: terminalListSchema },
      errors: ACQUIRE_ERRORS,
      handler: (input) => forwardRequest(context, input, SESSION_LIST),
    }),
    route({
      method: 'DELETE',
      path: '/terminal/sessions/:session',
      access: byKey('boxes', 'write'),
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
      method: 'GET',
      path: '/terminal',
      access: byKey('boxes', 'write', { acceptsTickets: true }),
      summary: 'Attach to a terminal session, or start one, over a WebSocket',
      description:
        'Wakes a suspended box, except with create=never or offset. To resume after a ' +
        'disconnect, connect again with session, client and the offset of the received output.',
      request: { params: boxParams, query: terminalQuerySchema },
      isWebSocket: true,
      responses: { 101: null },
      errors: [...ACQUIRE_ERRORS, 'invalid_request', 'customer_session_limit'],
      async handler(input) {
        const { query, reply } = input
        if (context.closing.aborted) throw new ApiError('control_plane_unavailable')
        const acquired = await acquireBox(context, input, {
          isAttachment: true,
          isTerminal: true,
          wakesBox: mayCreate(query),
        })
        const { agent, session } = await attach(input, acquired, query)
        await context.recordConnect(input.actor, acquired.box.id, session).catch((error: unknown) => {
          agent.terminate()
          throw error
        })
        await relay(input, agent, acquired)
        return reply
      },
    }),
  ]
}

const hasCode = (error: unknown, code: string): boolean => error instanceof ApiError && error.code === code
