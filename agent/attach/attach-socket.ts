// One attached client on a dial-back WebSocket: typed messages, and detection of a dead coordinator.
import type { WebSocket } from 'ws'
import {
  type ClientMessage,
  InvalidAttachMessageError,
  parseClientMessage,
  type ServerMessage,
  type StdinBytes,
} from '../../shared/api/attach.ts'
import { ATTACH_LIMITS, encodeChunk, type OutputChannel } from '../../shared/attach-format.ts'
import { freeBuffer } from '../../shared/free-buffer.ts'

export type AttachSocket = {
  /** Sends a control message. Resolves when it is written to the socket, or the connection is closed. */
  send(message: ServerMessage): Promise<void>
  /** Resolves when the bytes are written to the socket, or the connection is closed. */
  sendOutput(channel: OutputChannel, bytes: Buffer): Promise<void>
  /** Calls back for each valid message of the client, in order. To be called once, immediately. */
  onMessage(handler: (message: ClientMessage | StdinBytes) => void): void
  /** Sends a final message, if given, and closes the connection. */
  close(message?: ServerMessage): void
  /** Aborts when the connection is closed. */
  readonly signal: AbortSignal
}

/** The coordinator pings every 15 s. */
const DEAD_AFTER_MS = 45_000
const CHECK_MS = 15_000
/** How long the coordinator may take to close the connection. */
const CLOSE_TIMEOUT_MS = 5_000

/** The close code after a message that is not valid. */
const POLICY_VIOLATION = 1008

/** @param ws paused; onMessage() resumes it */
export function createAttachSocket(ws: WebSocket): AttachSocket {
  const closed = new AbortController()
  let silentMs = 0
  const recordActivity = () => {
    silentMs = 0
  }
  // Counts intervals instead of comparing times: bytes that arrived while the event loop was blocked are read first.
  const silenceTimer = setInterval(() => {
    silentMs += CHECK_MS
    if (silentMs >= DEAD_AFTER_MS) ws.terminate()
  }, CHECK_MS).unref()
  ws.on('ping', recordActivity)
  ws.on('message', recordActivity)
  ws.once('close', () => {
    clearInterval(silenceTimer)
    closed.abort()
  })

  const close = (code: number) => {
    ws.close(code)
    setTimeout(() => ws.terminate(), CLOSE_TIMEOUT_MS).unref()
  }

  return {
    send: (message) => new Promise((resolve) => ws.send(JSON.stringify(message), () => resolve())),
    async sendOutput(channel, bytes) {
      for (let start = 0; start < bytes.length && !closed.signal.aborted; start += ATTACH_LIMITS.chunkBytes) {
        const chunk = encodeChunk(channel, bytes.subarray(start, start + ATTACH_LIMITS.chunkBytes))
        await new Promise<void>((resolve) => ws.send(chunk, () => resolve()))
        freeBuffer(chunk)
      }
    },
    onMessage(handler) {
      ws.on('message', (data, isBinary) => {
        if (!Buffer.isBuffer(data) || ws.readyState !== ws.OPEN) return
        try {
          handler(parseClientMessage(data, isBinary))
        } catch (error) {
          if (!(error instanceof InvalidAttachMessageError)) throw error
          close(POLICY_VIOLATION)
        }
      })
      ws.resume()
    },
    close(message) {
      if (message !== undefined) ws.send(JSON.stringify(message), () => undefined)
      close(1000)
    },
    signal: closed.signal,
  }
}
