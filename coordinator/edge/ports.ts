// GET /ports/{port}: one TCP connection to a port of the box over a WebSocket. `box forward` uses it.
import { portParamSchema } from '../../shared/api/ports.ts'
import { ApiError } from '../../shared/errors.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import type { ConnectToPort } from './connect-to-port.ts'
import type { EdgeContext } from './context.ts'
import type { ConnectionRelay } from './relay-connection.ts'

const portParams = boxParams.extend({ port: portParamSchema })

export function portRoutes(
  context: EdgeContext,
  connectToPort: ConnectToPort,
  relay: ConnectionRelay,
): Route[] {
  return [
    route({
      id: 'ports.connect',
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
      isForward: true,
      responses: { 101: null },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      errorDescriptions: {
        not_found:
          'There is no such box, this credential may not access it, or no process of the box listens on the port.',
        exec_failed: 'The server on the port does not accept connections.',
      },
      async handler(input) {
        const { params, reply, actor } = input
        if (context.closing.aborted) throw new ApiError('control_plane_unavailable')
        const acquired = await acquireBox(context, input, { kind: 'forward' })
        const agent = await connectToPort(acquired, params.port)
        const record = () => context.recordForward(actor, acquired.box.id, params.port)
        await relay(input, agent, acquired, record)
        return reply
      },
    }),
  ]
}
