// Opens connections to boxes that carry bytes, such as TCP connections to listening ports.
import type { Duplex } from 'node:stream'
import { systemClock } from '../../shared/clock.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import type { Sockets } from '../agents/tunnel/types.ts'
import { createTokenBuckets } from '../base/token-buckets.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { openDialBack } from './open-dial-back.ts'

/**
 * Connects to a listening TCP socket of a process of the box. A FIN of one side ends that direction only, also when the stream
 * is the socket of an HTTP client: set `allowHalfOpen` to false there. The signal of the acquired box ends only the attempt.
 * @throws ApiError not_found when nothing listens on the port; box_unreachable; exec_failed
 */
export type ConnectToPort = (acquired: AcquiredBox, port: number) => Promise<Duplex>

/** Messages on all connections of a box, and of the clients of a user. A peer sends what it reads at once, up to 64 KiB. */
export const CONNECTION_MESSAGES = { capacity: 100_000, perSecond: 50_000 }

export function createConnectToPort(dependencies: { sockets: Sockets }): ConnectToPort {
  const openConnection = createOpenConnection(dependencies)
  return (acquired, port) => openConnection(acquired, `/ports/${port}/connect`)
}

/**
 * Requests a dial-back connection with this path of the agent.
 * @throws ApiError the agent's error response, or box_unreachable
 */
export type OpenConnection = (acquired: AcquiredBox, path: string) => Promise<Duplex>

export function createOpenConnection(dependencies: { sockets: Sockets }): OpenConnection {
  const messages = createTokenBuckets(systemClock, CONNECTION_MESSAGES)
  return async (acquired, path) => {
    const ws = await openDialBack(dependencies.sockets, acquired, { path })
    const connection = new TcpOverWebSocket(ws, {
      respondsToPings: true,
      countMessage: () => messages.spend(acquired.box.id, 1),
    })
    // The box may reset the connection before the caller has added listeners: without this one, the coordinator would crash.
    return connection.on('error', () => undefined)
  }
}
