// GET /ports/{port}: one TCP connection to a port of the box over a WebSocket. `box forward` uses it.
import { portParamSchema } from '../../shared/api/ports.ts'
import { systemClock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { joinConnections } from '../../shared/join-connections.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import { createTokenBuckets } from '../base/token-buckets.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { acceptWebSocket } from '../http/websocket.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import { CLOSE_CODES, getCloseCode } from './close-codes.ts'
import { CONNECTION_MESSAGES, type ConnectToPort } from './connect-to-port.ts'
import type { EdgeContext } from './context.ts'

const portParams = boxParams.extend({ port: portParamSchema })

export function portRoutes(context: EdgeContext, connectToPort: ConnectToPort): Route[] {
  const { closing } = context
  const messages = createTokenBuckets(systemClock, CONNECTION_MESSAGES)

  return [
    route({
      method: 'GET',
      path: '/ports/:port',
      access: byKey('boxes', 'run'),
      summary: 'Connect to a listening TCP port of the box over a WebSocket',
      description:
        'Each WebSocket is one TCP connection. A binary message has up to 65536 bytes of it, and an empty one is the FIN of ' +
        'its direction: the other direction continues. After both, the server closes the WebSocket with code 1000. A ' +
        'WebSocket that closes earlier is a reset connection. The subprotocol is optional. ' +
        'Does not wake a suspended box. An open connection without bytes does not keep the box from being paused for idleness.',
      request: { params: portParams },
      isWebSocket: true,
      responses: { 101: null },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      errorDescriptions: {
        not_found:
          'There is no such box, this credential may not access it, or no process of the box listens on the port.',
        exec_failed: 'The server on the port does not accept connections.',
      },
      async handler(input) {
        const { params, request, reply, actor } = input
        if (closing.aborted) throw new ApiError('control_plane_unavailable')
        const acquired = await acquireBox(context, input, { isForward: true })
        const agent = await connectToPort(acquired, params.port)
        const accept = async () => {
          await context.recordForward(actor, acquired.box.id, params.port)
          return acceptWebSocket(request, reply)
        }
        const ws = await accept().catch((error: unknown) => {
          agent.destroy()
          throw error
        })
        const client = new TcpOverWebSocket(ws, {
          respondsToPings: true,
          countMessage: () => messages.spend(actor.credential.id, 1),
        })
        abortWith(client, closing, () => [CLOSE_CODES.stopping, ''])
        abortWith(client, acquired.signal, (reason) =>
          reason instanceof ApiError ? [getCloseCode(reason), reason.code] : [CLOSE_CODES.failed, ''],
        )
        joinConnections(client, agent)
        return reply
      },
    }),
  ]
}

/** @param toClose returns the code and the reason of the close message */
function abortWith(
  connection: TcpOverWebSocket,
  signal: AbortSignal,
  toClose: (reason: unknown) => [code: number, reason: string],
): void {
  const onAbort = () => connection.abort(...toClose(signal.reason))
  signal.addEventListener('abort', onAbort, { once: true })
  connection.once('close', () => signal.removeEventListener('abort', onAbort))
  if (signal.aborted) onAbort()
}
