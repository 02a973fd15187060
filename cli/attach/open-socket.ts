// Passes the messages of ws, which reports refusals and pings, to the client of attachments.
import type { WebSocket } from 'ws'
import type { Socket, SocketHandlers } from '../../client/http/socket.ts'

/** @param connecting resolves with a paused WebSocket */
export async function openSocket(
  connecting: Promise<WebSocket>,
  { onOpen, onMessage, onPing, onClose }: SocketHandlers,
): Promise<Socket> {
  const ws = await connecting
  const socket: Socket = {
    // After a failure to send, the connection is closed.
    send: (data) => ws.send(data, () => undefined),
    close: () => ws.close(1000),
    reportsPings: true,
  }
  let violation: string | undefined
  ws.on('message', (data, isBinary) => {
    if (Buffer.isBuffer(data)) onMessage(isBinary ? (data as Buffer<ArrayBuffer>) : data.toString())
  })
  ws.on('ping', () => onPing?.())
  ws.on('error', (error) => {
    // Other errors are those of the network.
    if ('code' in error && String(error.code).startsWith('WS_ERR_')) violation = error.message
  })
  ws.once('close', (code) => onClose(code, violation))
  onOpen?.(socket)
  ws.resume()
  return socket
}
