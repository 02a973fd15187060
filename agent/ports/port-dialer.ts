// Opens the dial-back connections of TCP connections to ports of the box.
import { MAX_ATTACH_MESSAGE_BYTES } from '../../shared/attach-format.ts'
import { SOCKET_PATH_PREFIX } from '../../shared/protocol.ts'
import {
  createWebSocketDialer,
  type DialerOptions,
  type WebSocketDialer,
} from '../tunnel/websocket-dialer.ts'

/** The connections are paused. */
export const createPortDialer = (options: DialerOptions): WebSocketDialer =>
  createWebSocketDialer(options, SOCKET_PATH_PREFIX, MAX_ATTACH_MESSAGE_BYTES, { isPaused: true })
