// Serves the app on one connection: text messages, and an HTTP/2 session from its first frame until the coordinator
// closes it.
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import {
  coordinatorMessageSchema,
  formatMessage,
  InvalidMessageError,
  parseMessage,
} from '../../shared/tunnel-messages.ts'
import { WebSocketDuplex } from '../../shared/websocket-duplex.ts'
import type { AgentApp } from '../app.ts'
import { MessageServer } from '../requests/message-server.ts'

export type ServeOptions = {
  /** The app of app.ts. */
  app: Pick<AgentApp, 'server' | 'jsonRouter' | 'storedResponses'>
  log: Logger
}

/**
 * Returns immediately.
 * @param onFailure called when the connection cannot be used any more
 */
export function serveConnection(
  ws: WebSocket,
  { app, log }: ServeOptions,
  onFailure: (reason: string) => void,
): void {
  // On a closed connection, ws calls `onDone` with an error.
  const send = (message: string | Buffer, onDone: () => void = () => undefined) =>
    ws.send(message, { binary: false }, onDone)
  const messages = new MessageServer({ app, log, send })
  let http2: WebSocketDuplex | undefined

  function openHttp2(): WebSocketDuplex {
    const duplex = new WebSocketDuplex(ws)
    duplex.once('error', (error) => onFailure(error.message))
    duplex.once('close', () => {
      if (http2 === duplex) onFailure('the HTTP/2 session closed')
    })
    app.server.emit('connection', duplex)
    return duplex
  }

  function closeHttp2(): void {
    const closing = http2
    http2 = undefined
    closing?.destroy()
  }

  function receive(data: Buffer<ArrayBuffer>): void {
    const { head, body } = parseMessage(coordinatorMessageSchema, data)
    if (head.type === 'request') void messages.serve(head, body)
    else if (head.type === 'cancel') messages.cancel(head.id)
    else {
      closeHttp2()
      send(formatMessage({ type: 'http2.closed' }))
    }
  }

  ws.on('message', (data: Buffer<ArrayBuffer>, isBinary) => {
    if (isBinary) {
      http2 ??= openHttp2()
      http2.receive(data)
      return
    }
    try {
      receive(data)
    } catch (error) {
      if (!(error instanceof InvalidMessageError)) throw error
      onFailure(`the coordinator sent an invalid message: ${error.message}`)
    }
  })
  ws.once('close', () => {
    messages.close()
    closeHttp2()
  })
}
