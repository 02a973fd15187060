// The desktop of a box. POST /desktop/stop is that of spec §4.17; its errors have a form of their own (§7.2).
import {
  type AgentDesktopStatus,
  type DesktopMode,
  type DesktopStarted,
  type DesktopStatus,
  type DesktopStopped,
  desktopStartedSchema,
  desktopStartSchema,
  desktopStatusSchema,
  desktopStoppedSchema,
  desktopStopResponseSchema,
  desktopStopSchema,
} from '../../shared/api/desktop.ts'
import { DESKTOP_REQUIREMENTS, formatInstallCommand } from '../../shared/desktop-programs.ts'
import { ApiError } from '../../shared/errors.ts'
import { getBoxVariables } from '../boxes/variables.ts'
import type { BoxRow } from '../db/schema.ts'
import { byKey } from '../http/access.ts'
import type { Actor } from '../http/actor.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, type AcquiredBox, acquireBox, boxParams, WAKE_ERRORS } from './acquire-box.ts'
import { isAgentErrorCode } from './agent-response.ts'
import { createOpenConnection } from './connect-to-port.ts'
import type { EdgeContext } from './context.ts'
import type { ConnectionRelay } from './relay-connection.ts'
import { requestAgent } from './request-agent.ts'

/** Chromium may need half a minute on a busy machine. */
const START_TIMEOUT_MS = 90_000
/** Covers SIGTERM and SIGKILL with their grace periods, of the browser and then of the desktop. */
const STOP_TIMEOUT_MS = 60_000

/** The codes of POST /desktop/stop, for those that other routes of the edge respond with. */
const STOP_CODES = {
  invalid_request: 'bad_request',
  invalid_path: 'bad_request',
  payload_too_large: 'bad_request',
  exec_failed: 'desktop_stop_failed',
  // A page of another origin sent the cookie of a session, which the route does not accept.
  not_allowed: 'unauthorized',
} as const

/** The session of the event box.connect. */
const DESKTOP_SESSION = 'desktop'

export function desktopRoutes(context: EdgeContext, relay: ConnectionRelay): Route[] {
  const openConnection = createOpenConnection(context)
  return [
    route({
      id: 'desktop.get',
      method: 'GET',
      path: '/desktop',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Return the programs of the desktop of a box, and its running session',
      description:
        'The desktop needs an X server, a window manager and a VNC server on the box. The response says which are missing, ' +
        'and the command that installs them.',
      request: { params: boxParams },
      responses: { 200: desktopStatusSchema },
      errors: ACQUIRE_ERRORS,
      async handler(input) {
        const acquired = await acquireBox(context, input)
        const { json } = await requestAgent(context, acquired, {
          method: 'GET',
          path: '/desktop',
          type: 'desktop.status',
        })
        return describeStatus(JSON.parse(json.toString()) as AgentDesktopStatus, acquired.box)
      },
    }),
    route({
      id: 'desktop.start',
      method: 'POST',
      path: '/desktop/start',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Start the desktop of a box, or Chromium on its whole screen',
      description:
        'Wakes a suspended box and waits for it. Both modes share a display. The size is that of the first start; a mode ' +
        'that runs continues unchanged. The desktop runs until it is stopped, or the box stops.',
      request: { params: boxParams, body: desktopStartSchema },
      responses: { 200: desktopStartedSchema },
      errors: [...WAKE_ERRORS, 'invalid_request', 'desktop_not_installed'],
      async handler(input) {
        const acquired = await acquireBox(context, input, { wakesBox: true })
        const boxEnv = getBoxVariables(acquired.box)
        const { json } = await requestAgent(context, acquired, {
          method: 'POST',
          path: '/desktop/start',
          body: JSON.stringify({ ...input.body, boxEnv }),
          type: 'desktop.started',
          timeoutMs: START_TIMEOUT_MS,
        }).catch(replaceInstallMessage(acquired.box.hostname))
        const started = JSON.parse(json.toString()) as DesktopStarted
        if (!started.alreadyRunning)
          await context.recordDesktop('box.desktop_start', input.actor, acquired.box.id, started.mode)
        return started
      },
    }),
    route({
      id: 'desktop.view',
      method: 'GET',
      path: '/desktop/stream',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'View and control the desktop of a box with VNC over a WebSocket',
      description:
        'The binary messages are the bytes of a VNC connection (RFB 3.8, without a password), as noVNC uses them. Each viewer ' +
        'counts as a forwarded connection. Does not wake a suspended box. A viewer of an unchanged screen does not keep the ' +
        'box from being paused for idleness.',
      request: { params: boxParams },
      isWebSocket: true,
      isForward: true,
      responses: { 101: null },
      errors: [...ACQUIRE_ERRORS, 'invalid_request', 'desktop_not_installed'],
      errorDescriptions: {
        not_found: 'There is no such box, this credential may not access it, or no desktop is running.',
      },
      async handler(input) {
        if (context.closing.aborted) throw new ApiError('control_plane_unavailable')
        const acquired = await acquireBox(context, input, { kind: 'forward' })
        const agent = await openConnection(acquired, '/desktop/stream').catch(
          replaceInstallMessage(acquired.box.hostname),
        )
        const record = () => context.recordConnect(input.actor, acquired.box.id, DESKTOP_SESSION)
        await relay(input, agent, acquired, record)
        return input.reply
      },
    }),
    route({
      id: 'desktop.delete',
      method: 'DELETE',
      path: '/desktop',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Stop the desktop of a box',
      description:
        'Like `POST /desktop/stop`, also with a ticket, and with the errors of the other routes. The mode `desktop` includes ' +
        'the mode `browser`.',
      request: { params: boxParams, query: desktopStopSchema },
      responses: { 200: desktopStoppedSchema },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      async handler(input) {
        return stopDesktop(context, input.actor, await acquireBox(context, input), input.query.mode)
      },
    }),
    route({
      id: 'desktop.stop',
      method: 'POST',
      path: '/desktop/stop',
      access: byKey('boxes', 'run'),
      summary: 'Stop the desktop of a box',
      description:
        'Terminates all processes of the mode: those of `desktop` include the browser, and those of `browser` are Chromium ' +
        'and, when the desktop was not started, the X server. Has no effect when the mode is not running. Does not wake a ' +
        'suspended box. The body of an error has only its code.',
      request: { params: boxParams, body: desktopStopSchema },
      bareErrors: STOP_CODES,
      responses: { 200: desktopStopResponseSchema },
      errors: [...ACQUIRE_ERRORS, 'resolve_failed', 'desktop_stop_failed'],
      errorDescriptions: {
        unauthorized:
          'The API key is missing or not valid, or the request has another credential than an API key.',
        desktop_stop_failed:
          'The box has processed the request, and failed: processes survived SIGKILL, or its response is not valid. Some ' +
          'processes may still run.',
        resolve_failed:
          'The box could not be looked up, because the database of the coordinator failed. Try again.',
      },
      async handler(input) {
        const acquired = await acquireBox(context, input).catch(throwResolveFailed)
        const { mode } = await stopDesktop(context, input.actor, acquired, input.body.mode).catch(
          throwStopFailed,
        )
        return { ok: true, box: acquired.box.hostname, mode }
      },
    }),
  ]
}

/** Adds what the coordinator knows: a user runs the command as root. */
function describeStatus({ programs, ...status }: AgentDesktopStatus, box: BoxRow): DesktopStatus {
  return {
    ...status,
    programs: programs.map(({ role, program }) => {
      const { package: packageName, requiredFor } = DESKTOP_REQUIREMENTS[role]
      return { role, program, package: packageName, requiredFor: [...requiredFor] }
    }),
    install: {
      desktop: formatInstallCommand(programs, 'desktop'),
      browser: formatInstallCommand(programs, 'browser'),
    },
    installOn: box.kind === 'machine' || box.image !== null ? 'box' : 'coordinator',
  }
}

/** The message of the agent could name a command for root. */
function replaceInstallMessage(name: string) {
  return (error: unknown): never => {
    if (!(error instanceof ApiError) || error.code !== 'desktop_not_installed') throw error
    throw new ApiError(
      error.code,
      `Box ${name} lacks programs of the desktop. \`box desktop install ${name}\` shows which, or installs them.`,
    )
  }
}

async function stopDesktop(
  context: EdgeContext,
  actor: Actor,
  acquired: AcquiredBox,
  mode: DesktopMode = 'desktop',
): Promise<DesktopStopped> {
  const { json } = await requestAgent(context, acquired, {
    method: 'POST',
    path: '/desktop/stop',
    body: JSON.stringify({ mode }),
    type: 'desktop.stopped',
    timeoutMs: STOP_TIMEOUT_MS,
  })
  const stopped = JSON.parse(json.toString()) as DesktopStopped
  if (stopped.mode !== mode) throw new ApiError('exec_failed', 'The agent responded for a different mode.')
  if (stopped.wasRunning) await context.recordDesktop('box.desktop_stop', actor, acquired.box.id, mode)
  return stopped
}

/** Every error of the lookup that is not an ApiError is one of the database. */
function throwResolveFailed(error: unknown): never {
  if (error instanceof ApiError) throw error
  throw new ApiError('resolve_failed', undefined, { headers: { 'retry-after': '1' }, cause: error })
}

/** An error response of the agent. */
function throwStopFailed(error: unknown): never {
  if (error instanceof ApiError && isAgentErrorCode(error.code))
    throw new ApiError('desktop_stop_failed', error.message, { cause: error })
  throw error
}
