// Accepts dial-back connections for output streams: one WebSocket per stream. An HTTP request, which a transfer uses, is
// not suitable: a proxy in front of the coordinator may buffer the request body until it is complete.
import type { IncomingMessage } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import { ApiError } from '../../shared/errors.ts'
import { STREAM_PATH_PREFIX } from '../../shared/protocol.ts'
import { MAX_FRAME_BYTES } from '../../shared/stream-frames.ts'
import type { BoxLimits } from './box-limits.ts'
import { type Authenticate, authenticateBox, WRONG_CREDENTIALS } from './credentials.ts'
import { createDialBacks, type DialBacks } from './dial-backs.ts'
import { rejectUpgrade } from './reject-upgrade.ts'
import type { Streams } from './types.ts'
import { createWebSocketServer } from './websocket-server.ts'

export type StreamAcceptor = Streams &
  Pick<DialBacks<Readable>, 'disconnect' | 'close'> & {
    handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  }

/** Messages buffered per stream before the agent is paused: at most some 450 KiB. */
const BUFFERED_MESSAGES = 8
const MAX_CONTROL_FRAMES = 100

/** @param options.dialBackTimeoutMs how long an agent may take to connect */
export function createStreams(options: {
  log: Logger
  authenticate: Authenticate
  dialBackTimeoutMs: number
  limits: Pick<BoxLimits, 'countStreamFrame'>
}): StreamAcceptor {
  const { log, authenticate, limits } = options
  const { expect, consumeId, disconnect, close } = createDialBacks<Readable>(options.dialBackTimeoutMs)
  const server = createWebSocketServer(MAX_FRAME_BYTES)

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = (err: Error) => log.debug({ err }, 'agent disconnected before the upgrade')
    socket.on('error', onError)
    const boxId = await authenticateBox(request, authenticate)
    if (boxId === null) throw new ApiError('unauthorized', WRONG_CREDENTIALS)
    const deliver = consumeId(boxId, (request.url ?? '').slice(STREAM_PATH_PREFIX.length), socket)
    server.handleUpgrade(request, socket, head, (ws) => {
      socket.off('error', onError)
      const messages = readMessages(ws, () => limits.countStreamFrame(boxId))
      if (!deliver(messages)) messages.destroy()
    })
  }

  return {
    expect,
    disconnect,
    close,
    handleUpgrade(request, socket, head) {
      accept(request, socket, head).catch((err: unknown) => {
        const isRejection = err instanceof ApiError
        if (!isRejection) log.error({ err }, 'failed to accept a stream connection')
        const { status, code, message } = isRejection ? err : new ApiError('control_plane_unavailable')
        rejectUpgrade(socket, { status, code, message })
      })
    },
  }
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
