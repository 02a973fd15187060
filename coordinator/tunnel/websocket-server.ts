// Takes the WebSockets that agents open, set up alike for the tunnel and for what goes beside it.
import { WebSocketServer } from 'ws'

/** @param maxMessageBytes the largest message taken from an agent */
export const createWebSocketServer = (maxMessageBytes: number): WebSocketServer =>
  new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    autoPong: false,
    // Only of text, which nobody sends here.
    skipUTF8Validation: true,
  })
