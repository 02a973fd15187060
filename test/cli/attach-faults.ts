// Makes the WebSockets of attached commands and of terminals fail.
import { WebSocket, WebSocketServer } from 'ws'
import type { ServerMessage } from '../../shared/api/attach.ts'
import { ApiError, type ErrorCode, edgeErrorBody } from '../../shared/errors.ts'
import {
  cutFromClient,
  cutFromCoordinator,
  refuseUpgrade,
  type UpgradeFault,
} from '../support/fault-proxy.ts'
import type { CliCoordinator } from './coordinator.ts'

/** How one connection fails. `afterBytes` counts the bytes of the TCP connection after the handshake of the client. */
export type AttachFault =
  | { kind: 'error_response'; code: ErrorCode; headers?: Record<string, string> }
  | { kind: 'bad_gateway' }
  | { kind: 'reset' }
  /** A late response. */
  | { kind: 'delay'; until: Promise<void> }
  /** No response. */
  | { kind: 'hang' }
  /** The connection is reset when this many bytes have been sent to the client, or received from it. */
  | { kind: 'cut_sent' | 'cut_received'; afterBytes: number }
  /** The server sends this message after the message `attached`, and closes the connection. */
  | { kind: 'message'; message: ServerMessage }
  /** The server sends only what `run` sends. */
  | { kind: 'script'; run(ws: WebSocket): void }

const PREFIX = 'GET /v1/box/fig/'

/** Replaces the faults of the connections from now on. null: the connection does not fail. */
export function setAttachFaults(coordinator: CliCoordinator, faults: readonly (AttachFault | null)[]) {
  const { requests, clearFaults, failNextUpgrade } = coordinator
  clearFaults()
  for (const fault of faults) failNextUpgrade(PREFIX, toUpgradeFault(coordinator, fault))
  const first = requests.length
  return {
    countConnections: () =>
      requests.slice(first).filter(({ line }) => /\/(attach|terminal)\?/.test(line)).length,
  }
}

function toUpgradeFault({ instance }: CliCoordinator, fault: AttachFault | null): UpgradeFault {
  switch (fault?.kind) {
    case undefined:
      return (_, open) => open()
    case 'reset':
      return (client) => client.destroy()
    case 'hang':
      return () => undefined
    case 'delay':
      return (_, open) => fault.until.then(open)
    case 'bad_gateway':
      return refuseUpgrade(502, '<html>bad gateway</html>', { 'content-type': 'text/html' })
    case 'error_response': {
      const error = new ApiError(fault.code, 'Try again later.')
      return refuseUpgrade(error.status, edgeErrorBody(error), fault.headers)
    }
    case 'cut_sent':
      return cutFromCoordinator(fault.afterBytes)
    case 'cut_received':
      return cutFromClient(fault.afterBytes)
    case 'script':
      return acceptWebSocket((ws) => fault.run(ws))
    case 'message':
      return acceptWebSocket((ws, url, headers) => {
        const upstream = new WebSocket(`${instance.url.replace('http', 'ws')}${url}`, { headers })
        upstream.on('error', () => undefined)
        upstream.once('message', (attached) => {
          ws.send(String(attached))
          ws.send(JSON.stringify(fault.message))
          ws.close(1011)
          upstream.terminate()
        })
      })
  }
}

const acceptWebSocket =
  (run: (ws: WebSocket, url: string, headers: Record<string, string>) => void): UpgradeFault =>
  (client, _, request, head) => {
    const server = new WebSocketServer({ noServer: true })
    server.handleUpgrade(request, client, head, (ws) => {
      ws.on('error', () => undefined)
      run(ws, request.url ?? '', { authorization: request.headers.authorization ?? '' })
    })
  }
