// WebSocket server options shared by tunnels and dial-back streams.
import { WebSocketServer } from 'ws'

/** @param maxMessageBytes the largest accepted message */
export const createWebSocketServer = (maxMessageBytes: number): WebSocketServer =>
  new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    // Agents do not fragment messages; a proxy may.
    maxFragments: 64,
    autoPong: false,
    // Text messages are rejected, or parsed and validated.
    skipUTF8Validation: true,
  })
