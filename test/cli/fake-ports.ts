// Ports of the boxes of a fake coordinator: functions that serve connections.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'

export type FakePorts = {
  /** By port. A port without a server refuses connections. */
  servers: Map<number, (connection: Duplex) => void>
  /** Refusals of the next connections. */
  refusals: ApiError[]
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, port: number): void
  /** Resets the connections. */
  closeConnections(): void
}

export function createFakePorts(): FakePorts {
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  const connections = new Set<TcpOverWebSocket>()
  const servers: FakePorts['servers'] = new Map()
  const refusals: ApiError[] = []
  return {
    servers,
    refusals,
    handleUpgrade(request, socket, head, port) {
      const serve = servers.get(port)
      const error =
        refusals.shift() ??
        (serve === undefined
          ? new ApiError('not_found', `No process of the box listens on port ${port}.`)
          : undefined)
      if (serve === undefined || error !== undefined)
        return refuse(socket, error ?? new ApiError('not_found'))
      wss.handleUpgrade(request, socket, head, (ws) => {
        const connection = new TcpOverWebSocket(ws)
        connections.add(connection)
        connection.on('error', () => undefined).once('close', () => connections.delete(connection))
        serve(connection)
      })
    },
    closeConnections() {
      for (const connection of connections) connection.destroy()
    },
  }
}

function refuse(socket: Duplex, error: ApiError): void {
  const body = JSON.stringify(edgeErrorBody(error))
  const headers = Object.entries(error.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${error.status} Refused\r\nconnection: close\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n${headers.join('')}\r\n${body}`,
  )
}
