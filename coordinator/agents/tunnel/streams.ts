// Accepts dial-back connections for output streams: one WebSocket per stream.
import { Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { STREAM_PATH_PREFIX } from '../../../shared/protocol.ts'
import { MAX_FRAME_BYTES } from '../../../shared/stream-frames.ts'
import type { BoxLimits } from './box-limits.ts'
import {
  createWebSocketDialBacks,
  type WebSocketDialBackOptions,
  type WebSocketDialBacks,
} from './websocket-dial-backs.ts'

/** Messages buffered per stream before the agent is paused: at most some 450 KiB. */
const BUFFERED_MESSAGES = 8
const MAX_CONTROL_FRAMES = 100

export type StreamsOptions = Pick<
  WebSocketDialBackOptions<Readable>,
  'log' | 'authenticate' | 'dialBackTimeoutMs' | 'onAuthenticated' | 'forwarding'
> & {
  limits: Pick<BoxLimits, 'countStreamFrame'>
}

export function createStreams({ limits, ...options }: StreamsOptions): WebSocketDialBacks<Readable> {
  return createWebSocketDialBacks({
    ...options,
    pathPrefix: STREAM_PATH_PREFIX,
    maxMessageBytes: MAX_FRAME_BYTES,
    receive: (ws, boxId) => readMessages(ws, () => limits.countStreamFrame(boxId)),
  })
}

/**
 * The binary messages of a WebSocket as an object stream of Buffers. Ends when the connection closes, cleanly or not, after
 * the buffered messages have been read. Destroying it terminates the connection; a text message destroys it, and so do
 * many pings, which no agent sends here.
 * @param countMessage returns the milliseconds until the next message may be read
 */
function readMessages(ws: WebSocket, countMessage: () => number): Readable {
  let isDelayed = false
  let controlFrames = 0
  const messages = new Readable({
    objectMode: true,
    highWaterMark: BUFFERED_MESSAGES,
    read() {
      if (ws.isPaused && !isDelayed) ws.resume()
    },
    destroy(error, done) {
      ws.terminate()
      done(error)
    },
  })
  ws.on('message', (data, isBinary) => {
    if (messages.destroyed) return
    if (!isBinary || !Buffer.isBuffer(data)) messages.destroy(new Error('the agent sent a text message'))
    else if (!messages.push(data)) ws.pause()
    const delayMs = countMessage()
    if (delayMs > 0 && !isDelayed) delay(delayMs)
  })
  function delay(ms: number): void {
    isDelayed = true
    ws.pause()
    setTimeout(() => {
      isDelayed = false
      if (messages.readableLength < BUFFERED_MESSAGES) ws.resume()
    }, ms).unref()
  }
  const countControlFrame = () => {
    if (++controlFrames > MAX_CONTROL_FRAMES) messages.destroy(new Error('the agent sent too many pings'))
  }
  ws.on('ping', countControlFrame)
  ws.on('pong', countControlFrame)
  // 'close' follows.
  ws.on('error', () => undefined)
  ws.once('close', () => {
    if (!messages.destroyed) messages.push(null)
  })
  return messages
}
