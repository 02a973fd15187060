// GET /exec/{processId}/attach: the output and stdin of an attached command as a WebSocket.
import type { WebSocket } from 'ws'
import { attachMessageSchema, attachQuerySchema } from '../../shared/api/attach.ts'
import { systemClock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { createTokenBuckets } from '../base/token-buckets.ts'
import { byKey } from '../http/access.ts'
import { type Route, type RouteInput, type RouteSchemas, route } from '../http/route.ts'
import { acceptWebSocket } from '../http/websocket.ts'
import { ACQUIRE_ERRORS, type AcquiredBox, acquireBox } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { openDialBack } from './open-dial-back.ts'
import { processParams } from './processes.ts'
import { relayAttachment } from './relay-attachment.ts'

/** Messages of the agent of a box, and of the clients of a key. A message of a correct peer may be as short as a key press. */
const MESSAGES = { capacity: 40_000, perSecond: 20_000 }

/** Accepts the client's WebSocket and relays messages until one side disconnects. `agent` is paused. */
export type AttachmentRelay = (
  input: Pick<RouteInput<RouteSchemas>, 'request' | 'reply' | 'actor'>,
  agent: WebSocket,
  acquired: Pick<AcquiredBox, 'box' | 'signal'>,
) => Promise<void>

export function createAttachmentRelay({ closing }: Pick<EdgeContext, 'closing'>): AttachmentRelay {
  const messages = createTokenBuckets(systemClock, MESSAGES)
  return async ({ request, reply, actor }, agent, { box, signal }) => {
    const client = await acceptWebSocket(request, reply).catch((error: unknown) => {
      agent.terminate()
      throw error
    })
    await relayAttachment(client, agent, {
      log: request.log,
      closing,
      signal,
      countAgentMessage: () => messages.spend(`box:${box.id}`, 1),
      countClientMessage: () => messages.spend(`user:${actor.userId ?? actor.credential.id}`, 1),
    })
  }
}

export function attachRoutes(context: EdgeContext, relay: AttachmentRelay): Route[] {
  return [
    route({
      id: 'processes.attach',
      method: 'GET',
      path: '/exec/:processId/attach',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Attach to a command that was started with attached: live output and stdin over a WebSocket',
      description:
        'A newer connection to the same command replaces an older one. To resume, ' +
        'connect again with the offsets of the received output.',
      request: {
        params: processParams,
        query: attachQuerySchema,
      },
      isWebSocket: true,
      responses: { 101: attachMessageSchema },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      async handler(input) {
        const { params, query, reply } = input
        if (context.closing.aborted) throw new ApiError('control_plane_unavailable')
        const acquired = await acquireBox(context, input, { kind: 'attachment' })
        const { stdoutOffset = 0, stderrOffset = 0 } = query
        const path = `/exec/${params.processId}/attach?stdoutOffset=${stdoutOffset}&stderrOffset=${stderrOffset}`
        const agent = await openDialBack(context.sockets, acquired, { path })
        await relay(input, agent, acquired)
        return reply
      },
    }),
  ]
}
