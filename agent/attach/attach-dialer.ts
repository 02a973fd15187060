// Opens the dial-back connections of attached clients.
import { MAX_ATTACH_MESSAGE_BYTES } from '../../shared/attach-format.ts'
import { SOCKET_PATH_PREFIX } from '../../shared/protocol.ts'
import { createWebSocketDialer, type DialerOptions } from '../tunnel/websocket-dialer.ts'
import { type AttachSocket, createAttachSocket } from './attach-socket.ts'

export type AttachDialer = {
  /** @param id of the request's DIAL_BACK_HEADER. Rejects when the coordinator rejects the connection. */
  connect(id: string): Promise<AttachSocket>
  /** Closes all connections. */
  close(): void
}

export function createAttachDialer(options: DialerOptions): AttachDialer {
  const { connect, close } = createWebSocketDialer(options, SOCKET_PATH_PREFIX, MAX_ATTACH_MESSAGE_BYTES, {
    isPaused: true,
  })
  return { connect: async (id) => createAttachSocket(await connect(id)), close }
}
