// Serves the routes of the agent on one connection.
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import { coordinatorMessageSchema, InvalidMessageError, parseMessage } from '../../shared/tunnel-messages.ts'
import type { JsonRouter } from '../requests/json-routes.ts'
import { MessageServer } from '../requests/message-server.ts'

export type ServeOptions = {
  router: JsonRouter
  log: Logger
}

/**
 * Returns immediately.
 * @param onFailure called when the connection cannot be used any more
 */
export function serveConnection(
  ws: WebSocket,
  { router, log }: ServeOptions,
  protocolVersion: number,
  onFailure: (reason: string) => void,
): void {
  const messages = new MessageServer({
    router,
    log,
    protocolVersion,
    // On a closed connection, ws calls `onDone` with an error.
    send: (message, isBinary, onDone) => ws.send(message, { binary: isBinary }, onDone),
  })
  ws.on('message', (data: Buffer<ArrayBuffer>) => {
    try {
      const { head, body } = parseMessage(coordinatorMessageSchema, data)
      messages.receive(head, body)
    } catch (error) {
      if (!(error instanceof InvalidMessageError)) throw error
      onFailure(`the coordinator sent an invalid message: ${error.message}`)
    }
  })
  ws.once('close', () => messages.close())
}
