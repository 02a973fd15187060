// Sends output streams over dial-back connections: one WebSocket to the coordinator per stream.
import { once } from 'node:events'
import type { WebSocket } from 'ws'
import { freeBuffer } from '../../shared/free-buffer.ts'
import { BOX_HEADER, STREAM_PATH_PREFIX } from '../../shared/protocol.ts'
import { encodeFrame, isOutput, type StreamFrame } from '../../shared/stream-frames.ts'
import { openWebSocket } from './websocket.ts'

export type StreamDialer = {
  /**
   * Connects, then sends the frames. Resolves when the coordinator has acknowledged the close frame. Rejects when the
   * coordinator rejects the connection or closes it early.
   *
   * Waits without a timeout while the coordinator does not read. TCP closes the connection to a dead coordinator, because
   * the stream's heartbeats are not acknowledged.
   * @param createFrames returns the frames; `signal` aborts when the connection closes
   */
  send(id: string, createFrames: (signal: AbortSignal) => AsyncIterable<StreamFrame>): Promise<void>
  /** Closes all connections. */
  close(): void
}

export type StreamDialerOptions = {
  boxId: string
  /** The coordinator's URL, without a trailing slash. */
  readUrl(): Promise<string>
  readToken(): Promise<string>
  handshakeTimeoutMs?: number
}

/** Limit for received messages. The coordinator sends none on a stream connection. */
const MAX_MESSAGE_BYTES = 1024

export function createStreamDialer(options: StreamDialerOptions): StreamDialer {
  const { boxId, readUrl, readToken, handshakeTimeoutMs = 10_000 } = options
  const connections = new Set<WebSocket>()

  async function connect(id: string): Promise<WebSocket> {
    const ws = openWebSocket(await readUrl(), STREAM_PATH_PREFIX + encodeURIComponent(id), {
      headers: { authorization: `Bearer ${await readToken()}`, [BOX_HEADER]: boxId },
      handshakeTimeoutMs,
      maxMessageBytes: MAX_MESSAGE_BYTES,
    })
    connections.add(ws)
    ws.once('close', () => connections.delete(ws))
    // Without a listener, an 'error' after this function returned would be an uncaught exception.
    ws.on('error', () => undefined)
    // Rejects on 'error'.
    await once(ws, 'open')
    return ws
  }

  return {
    async send(id, createFrames) {
      const ws = await connect(id)
      const closed = Promise.withResolvers<void>()
      const closeController = new AbortController()
      let isComplete = false
      let failure = new Error('the coordinator closed the stream connection')
      // ws emits 'close' after 'error'.
      ws.on('error', (error) => {
        failure = error
      })
      ws.once('close', (code) => {
        closeController.abort()
        if (isComplete && code === 1000) closed.resolve()
        else closed.reject(failure)
      })
      // When `createFrames` fails, `closed` has no other handler for its rejection.
      closed.promise.catch(() => undefined)
      try {
        for await (const frame of createFrames(closeController.signal)) {
          const message = encodeFrame(frame)
          if (isOutput(frame)) freeBuffer(frame.bytes)
          await sendMessage(ws, message)
          freeBuffer(message)
        }
        isComplete = true
      } finally {
        ws.close(1000)
      }
      await closed.promise
    },
    close() {
      for (const ws of connections) ws.terminate()
    },
  }
}

/** Resolves when the message has been written to the socket, which applies back-pressure to the caller. */
function sendMessage(ws: WebSocket, message: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    ws.send(message, (error) => (error ? reject(error) : resolve()))
  })
}
