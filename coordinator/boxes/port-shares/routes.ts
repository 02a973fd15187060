// The routes of shared ports (spec §4.5). Ports cannot be shared yet: only the listening ports are served.
import { z } from 'zod'
import { boxIdParamSchema } from '../../../shared/api/boxes.ts'
import { type PortShares, portSharesSchema } from '../../../shared/api/port-shares.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ERRORS, type ErrorCode } from '../../../shared/errors.ts'
import { byKey } from '../../http/access.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { type Route, route } from '../../http/route.ts'
import type { Heartbeats } from '../lifecycle/heartbeats.ts'
import { findListening } from './listening.ts'

const refuse = (error: ErrorCode) => ({ allowed: false as const, error, message: ERRORS[error][1] })

const SHARING_DISABLED: Omit<PortShares, 'listening'> = {
  enabled: false,
  linksEnabled: false,
  modes: {
    members: refuse('port_share_disabled'),
    anyone: refuse('share_links_disabled'),
    public: refuse('share_links_disabled'),
  },
  shares: [],
}

export function portRoutes({
  boxes,
  heartbeats,
  clock,
}: {
  boxes: Pick<BoxFinder, 'find'>
  heartbeats: Pick<Heartbeats, 'latest' | 'latestPorts'>
  clock: Clock
}): Route[] {
  return [
    route({
      method: 'GET',
      path: '/boxes/:id/port-shares',
      access: byKey('boxes', 'read'),
      summary: 'Get the listening ports of a box',
      description: 'Ports cannot be shared yet: enabled and linksEnabled are false, and shares is empty.',
      request: { params: z.object({ id: boxIdParamSchema }) },
      responses: { 200: portSharesSchema },
      async handler({ actor, params: { id } }): Promise<PortShares> {
        const box = await boxes.find(actor, id)
        const recent = { heartbeat: heartbeats.latest(id), ports: heartbeats.latestPorts(id) }
        return { ...SHARING_DISABLED, listening: findListening(box, recent, clock.now()) }
      },
    }),
  ]
}
