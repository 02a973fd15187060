// Accepts dial-back connections that are WebSockets. An HTTP request, which a transfer uses, is not suitable for them: a
// proxy in front of the coordinator may buffer the request body until it is complete.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import { ApiError } from '../../../shared/errors.ts'
import { type Authenticate, authenticateBox, WRONG_CREDENTIALS } from './credentials.ts'
import type { DialBackForwarding } from './dial-back-forwarding.ts'
import { createDialBacks, type DialBackOptions, type DialBacks } from './dial-backs.ts'
import { rejectUpgrade } from './reject-upgrade.ts'
import { createWebSocketServer } from './websocket-server.ts'

export type WebSocketDialBacks<T> = Pick<DialBacks<T>, 'expect' | 'disconnect' | 'close'> & {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

export type WebSocketDialBackOptions<T> = DialBackOptions & {
  log: Logger
  authenticate: Authenticate
  /** The id follows this prefix in the path. */
  pathPrefix: string
  maxMessageBytes: number
  /** Creates what the caller of `expect` gets. Called before the first message. */
  receive(ws: WebSocket, boxId: string): T
  /** Default: no other coordinator uses the database. */
  forwarding?: DialBackForwarding | undefined
}

export function createWebSocketDialBacks<T>(options: WebSocketDialBackOptions<T>): WebSocketDialBacks<T> {
  const { log, authenticate, pathPrefix, maxMessageBytes, receive, forwarding } = options
  const { expect, consumeId, disconnect, close } = createDialBacks<T>({
    ...options,
    idPrefix: forwarding?.idPrefix,
  })
  const server = createWebSocketServer(maxMessageBytes)

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = (err: Error) => log.debug({ err }, 'agent disconnected before the upgrade')
    socket.on('error', onError)
    const box = await authenticateBox(request, authenticate)
    if (box === null) throw new ApiError('unauthorized', WRONG_CREDENTIALS)
    const id = (request.url ?? '').slice(pathPrefix.length)
    if (await forwarding?.forwardUpgrade(request, socket, head, id)) return
    const deliver = consumeId(box, id, socket)
    server.handleUpgrade(request, socket, head, (ws) => {
      socket.off('error', onError)
      if (!deliver(receive(ws, box.boxId))) ws.terminate()
    })
  }

  return {
    expect,
    disconnect,
    close,
    handleUpgrade(request, socket, head) {
      accept(request, socket, head).catch((err: unknown) => {
        const isRejection = err instanceof ApiError
        if (!isRejection) log.error({ err }, 'failed to accept a dial-back connection')
        const { status, code, message } = isRejection ? err : new ApiError('control_plane_unavailable')
        rejectUpgrade(socket, { status, code, message })
      })
    },
  }
}
