// GET /ports/{port}/connect: connects to a port of the box, and relays the bytes over a dial-back connection.
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { portParams } from '../../shared/api/ports.ts'
import { joinConnections } from '../../shared/join-connections.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import { readDialBackId } from '../requests/dial-back-id.ts'
import { EMPTY_RESPONSE, type JsonRouter } from '../requests/json-routes.ts'
import type { WebSocketDialer } from '../tunnel/websocket-dialer.ts'
import { validateRequest } from '../validate-request.ts'
import type { PortConnector } from './connect.ts'

export type PortDeps = {
  connector: PortConnector
  /** Its connections are paused. */
  portDialer: Pick<WebSocketDialer, 'connect'>
  activity: Pick<ActivityTracker, 'touch'>
  log: Pick<Logger, 'debug'>
}

export function portRoutes(router: JsonRouter, { connector, portDialer, activity, log }: PortDeps): void {
  router.add('GET', '/ports/:port/connect', async ({ params, headers, signal }) => {
    const { port } = validateRequest(portParams, params, { root: 'query' })
    const id = readDialBackId(headers)
    const socket = await connector.connect(port, signal)
    relay(socket, id).catch((err: unknown) => {
      // A disconnect of the client has this effect too.
      log.debug({ err, port }, 'failed to open the dial-back connection of a port')
      socket.resetAndDestroy()
    })
    return EMPTY_RESPONSE
  })

  async function relay(socket: Socket, id: string): Promise<void> {
    const connection = new TcpOverWebSocket(await portDialer.connect(id))
    // An open connection without bytes does not keep the box from being idle.
    connection.on('data', activity.touch)
    socket.on('data', activity.touch)
    joinConnections(socket, connection)
  }
}
