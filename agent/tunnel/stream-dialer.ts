// Sends output streams over dial-back connections: one WebSocket to the coordinator per stream.
import type { WebSocket } from 'ws'
import { freeBuffer } from '../../shared/free-buffer.ts'
import { STREAM_PATH_PREFIX } from '../../shared/protocol.ts'
import { encodeFrame, isOutput, type StreamFrame } from '../../shared/stream-frames.ts'
import { createWebSocketDialer, type DialerOptions } from './websocket-dialer.ts'

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

/** Limit for received messages. The coordinator sends none on a stream connection. */
const MAX_MESSAGE_BYTES = 1024

export function createStreamDialer(options: DialerOptions): StreamDialer {
  const { connect, close } = createWebSocketDialer(options, STREAM_PATH_PREFIX, MAX_MESSAGE_BYTES)
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
    close,
  }
}

/** Resolves when the message has been written to the socket, which applies back-pressure to the caller. */
function sendMessage(ws: WebSocket, message: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    ws.send(message, (error) => (error ? reject(error) : resolve()))
  })
}
