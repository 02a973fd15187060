// Routes of the desktop.
import {
  agentDesktopStartSchema,
  agentDesktopStopSchema,
  type DesktopStopped,
} from '../../shared/api/desktop.ts'
import { assertEnvironment } from '../exec/environment.ts'
import { readDialBackId } from '../requests/dial-back-id.ts'
import { EMPTY_RESPONSE, type JsonRouter, RequestResetError } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import type { Desktop } from './desktop.ts'
import type { Viewers } from './viewers.ts'

export type DesktopDeps = {
  desktop: Desktop
  viewers: Viewers
  /** When it aborts, starts are refused. */
  stopping: AbortSignal
}

export function desktopRoutes(router: JsonRouter, { desktop, viewers, stopping }: DesktopDeps): void {
  router.add('GET', '/desktop', () => desktop.status())

  router.add('POST', '/desktop/start', (request) => {
    if (stopping.aborted) throw new RequestResetError()
    const body = validateRequest(agentDesktopStartSchema, request.body)
    assertEnvironment(body.boxEnv)
    return desktop.start(body)
  })

  router.add('POST', '/desktop/stop', async (request): Promise<DesktopStopped> => {
    const { mode } = validateRequest(agentDesktopStopSchema, request.body)
    const wasRunning = await desktop.stop(mode)
    return { ok: true, type: 'desktop.stopped', mode, wasRunning }
  })

  router.add('GET', '/desktop/stream', async ({ headers }) => {
    await viewers.connect(readDialBackId(headers))
    return EMPTY_RESPONSE
  })
}
