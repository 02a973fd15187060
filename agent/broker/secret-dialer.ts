// Opens the connections to the coordinator for the hosts of secrets.
import { MAX_ATTACH_MESSAGE_BYTES } from '../../shared/attach-format.ts'
import { SECRET_PATH_PREFIX } from '../../shared/protocol.ts'
import {
  createWebSocketDialer,
  type DialerOptions,
  type WebSocketDialer,
} from '../tunnel/websocket-dialer.ts'

/** The id of a connection is its host. The connections are paused. */
export const createSecretDialer = (options: DialerOptions): WebSocketDialer =>
  createWebSocketDialer(options, SECRET_PATH_PREFIX, MAX_ATTACH_MESSAGE_BYTES, { isPaused: true })
