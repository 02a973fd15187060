// Routes of the desktop.
import type { FastifyInstance } from 'fastify'
import {
  agentDesktopStartSchema,
  agentDesktopStopSchema,
  type DesktopStopped,
} from '../../shared/api/desktop.ts'
import { assertEnvironment } from '../exec/environment.ts'
import { addJsonRoute, EMPTY_RESPONSE, RequestResetError } from '../requests/json-routes.ts'
import { readDialBackId } from '../tunnel/dial-back-id.ts'
import { validateRequest } from '../validate-request.ts'
import type { Desktop } from './desktop.ts'
import type { Viewers } from './viewers.ts'

export type DesktopDeps = {
  desktop: Desktop
  viewers: Viewers
  /** When it aborts, starts are refused. */
  stopping: AbortSignal
}

export function desktopRoutes(app: FastifyInstance, { desktop, viewers, stopping }: DesktopDeps): void {
  addJsonRoute(app, 'GET', '/desktop', () => desktop.status())

  addJsonRoute(app, 'POST', '/desktop/start', (request) => {
    if (stopping.aborted) throw new RequestResetError()
    const body = validateRequest(agentDesktopStartSchema, request.body)
    assertEnvironment(body.boxEnv)
    return desktop.start(body)
  })

  addJsonRoute(app, 'POST', '/desktop/stop', async (request): Promise<DesktopStopped> => {
    const { mode } = validateRequest(agentDesktopStopSchema, request.body)
    const wasRunning = await desktop.stop(mode)
    return { ok: true, type: 'desktop.stopped', mode, wasRunning }
  })

  addJsonRoute(app, 'GET', '/desktop/stream', async ({ headers }) => {
    await viewers.connect(readDialBackId(headers))
    return EMPTY_RESPONSE
  })
}
