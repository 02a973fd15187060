// Routes of the desktop.
import type { FastifyInstance } from 'fastify'
import {
  agentDesktopStartSchema,
  agentDesktopStopSchema,
  type DesktopStopped,
} from '../../shared/api/desktop.ts'
import { assertEnvironment } from '../exec/environment.ts'
import { addJsonRoute, RequestResetError } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import type { Desktop } from './desktop.ts'

export type DesktopDeps = {
  desktop: Desktop
  /** When it aborts, starts are refused. */
  stopping: AbortSignal
}

export function desktopRoutes(app: FastifyInstance, { desktop, stopping }: DesktopDeps): void {
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
}
