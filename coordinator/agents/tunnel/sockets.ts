// Accepts dial-back connections for attached clients: one WebSocket per client.
import type { WebSocket } from 'ws'
import { MAX_ATTACH_MESSAGE_BYTES } from '../../../shared/attach-format.ts'
import { SOCKET_PATH_PREFIX } from '../../../shared/protocol.ts'
import {
  createWebSocketDialBacks,
  type WebSocketDialBackOptions,
  type WebSocketDialBacks,
} from './websocket-dial-backs.ts'

/** The WebSockets are paused: the caller resumes them after it has added its listeners. */
export const createSockets = (
  options: Pick<
    WebSocketDialBackOptions<WebSocket>,
    'log' | 'authenticate' | 'dialBackTimeoutMs' | 'onAuthenticated' | 'forwarding'
  >,
): WebSocketDialBacks<WebSocket> =>
  createWebSocketDialBacks({
    ...options,
    pathPrefix: SOCKET_PATH_PREFIX,
    maxMessageBytes: MAX_ATTACH_MESSAGE_BYTES,
    receive(ws) {
      ws.pause()
      ws.on('error', () => undefined)
      return ws
    },
  })
