// Relays the messages between an attached client and the agent. Both are untrusted: each message is checked.
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import {
  InvalidAttachMessageError,
  parseClientMessage,
  parseServerMessage,
  type ServerMessage,
} from '../../shared/api/attach.ts'
import { CLOSE_CODES, getCloseCode } from '../../shared/close-codes.ts'
import { ApiError } from '../../shared/errors.ts'
import { freeBuffer } from '../../shared/free-buffer.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import { closeWebSocket } from '../http/websocket.ts'
import { isAgentErrorCode } from './agent-response.ts'

export type RelayOptions = {
  log: Pick<Logger, 'debug'>
  /** Aborts when the coordinator is about to stop. */
  closing: AbortSignal
  /** Aborts with an ApiError when the client's credential may no longer use the connection. */
  signal: AbortSignal
  /** Counts a message. Returns the milliseconds until the next one may be read. */
  countAgentMessage(): number
  countClientMessage(): number
  /** Interval of the pings. Default: 15 s. */
  pingMs?: number
}

/** Above this number of unsent bytes, the coordinator stops reading from the other side. */
const MAX_BUFFERED_BYTES = 1024 * 1024
/** A peer that misses this many pings is dead. */
const MISSED_PINGS = 3
/** Pings that a peer may send per interval of pings. */
const MAX_PEER_PINGS = 100

/**
 * Returns when both connections are closing. When the agent disconnects before it has completed the exchange, or violates
 * the protocol, or the client may no longer use the connection, the client gets an `error` message.
 * @param client paused
 * @param agent paused
 */
export function relayAttachment(client: WebSocket, agent: WebSocket, options: RelayOptions): Promise<void> {
  const { log, closing, signal, countAgentMessage, countClientMessage, pingMs = 15_000 } = options
  const finished = Promise.withResolvers<void>()
  let isFinished = false

  const finish = (code: number, message?: ServerMessage, reason = '') => {
    if (isFinished) return
    isFinished = true
    clearInterval(pingTimer)
    closing.removeEventListener('abort', onClosing)
    signal.removeEventListener('abort', onAbort)
    if (message !== undefined) client.send(JSON.stringify(message), () => undefined)
    closeWebSocket(client, code, reason)
    closeWebSocket(agent, code, '')
    finished.resolve()
  }
  const fail = (error: ApiError) => finish(CLOSE_CODES.failed, toErrorMessage(error))
  const onClosing = () => finish(CLOSE_CODES.stopping, { type: 'reconnect' })
  const onAbort = () => {
    const error: unknown = signal.reason
    if (error instanceof ApiError) finish(getCloseCode(error), toErrorMessage(error), error.code)
  }

  const fromAgent = (data: Buffer, isBinary: boolean): Buffer | string => {
    const message = parseServerMessage(data, isBinary)
    if (message.type === 'output') return data
    if (message.type === 'error' && !isAgentErrorCode(message.code)) message.code = 'exec_failed'
    return JSON.stringify(message)
  }
  const fromClient = (data: Buffer, isBinary: boolean): Buffer | string => {
    const message = parseClientMessage(data, isBinary)
    return message.type === 'stdinBytes' ? data : JSON.stringify(message)
  }
  const peers = [
    forward(agent, client, fromAgent, countAgentMessage, (problem) => {
      log.debug({ problem }, 'the agent violated the attach protocol')
      fail(createAgentProtocolError(`The agent sent ${problem}.`))
    }),
    forward(client, agent, fromClient, countClientMessage, (problem) =>
      finish(
        CLOSE_CODES.invalid,
        toErrorMessage(new ApiError('invalid_request', `The client sent ${problem}.`)),
      ),
    ),
  ]
  const pingTimer = setInterval(() => {
    const [isAgentAlive, isClientAlive] = peers.map((peer) => peer.ping())
    if (!isClientAlive) finish(CLOSE_CODES.failed)
    else if (!isAgentAlive) fail(UNREACHABLE)
  }, pingMs)
  client.once('close', () => finish(CLOSE_CODES.complete))
  agent.once('close', (code) => (code === CLOSE_CODES.complete ? finish(code) : fail(UNREACHABLE)))
  closing.addEventListener('abort', onClosing)
  signal.addEventListener('abort', onAbort)
  if (closing.aborted) onClosing()
  if (signal.aborted) onAbort()
  // A connection may have closed before the listeners were added.
  if (client.readyState > client.OPEN) finish(CLOSE_CODES.complete)
  if (agent.readyState > agent.OPEN) fail(UNREACHABLE)
  client.resume()
  agent.resume()
  return finished.promise
}

const UNREACHABLE = new ApiError('box_unreachable', 'The connection to the box was lost.')

const toErrorMessage = ({ code, message }: ApiError): ServerMessage => ({
  type: 'error',
  code,
  message: message.slice(0, 4096),
})

/**
 * Forwards each message of `source`, as `convert` returns it, to `target`. Stops reading from `source` while `target` does
 * not accept bytes.
 * @param onInvalid gets what the source sent
 */
function forward(
  source: WebSocket,
  target: WebSocket,
  convert: (data: Buffer, isBinary: boolean) => Buffer | string,
  countMessage: () => number,
  onInvalid: (problem: string) => void,
): { ping(): boolean } {
  let missedPings = 0
  let peerPings = 0
  let isThrottled = false
  const resume = () => {
    if (!isThrottled && target.bufferedAmount < MAX_BUFFERED_BYTES) source.resume()
  }
  source.on('message', (data, isBinary) => {
    missedPings = 0
    if (!Buffer.isBuffer(data) || source.readyState !== source.OPEN) return
    let message: Buffer | string
    try {
      message = convert(data, isBinary)
    } catch (error) {
      if (!(error instanceof InvalidAttachMessageError)) throw error
      return onInvalid(error.message)
    }
    target.send(message, { binary: isBinary }, () => {
      if (isBinary) freeBuffer(data)
      if (source.isPaused) resume()
    })
    const delayMs = countMessage()
    if (delayMs > 0 && !isThrottled) {
      isThrottled = true
      setTimeout(() => {
        isThrottled = false
        resume()
      }, delayMs).unref()
    }
    if (isThrottled || target.bufferedAmount >= MAX_BUFFERED_BYTES) source.pause()
  })
  source.on('ping', (data) => {
    peerPings += 1
    if (peerPings > MAX_PEER_PINGS) source.terminate()
    else source.pong(data)
  })
  source.on('pong', () => {
    missedPings = 0
  })
  source.on('error', () => undefined)
  return {
    /** Returns false when the peer is dead. */
    ping() {
      peerPings = 0
      // The coordinator does not read from a paused source, whose target is slow.
      missedPings = source.isPaused ? 0 : missedPings + 1
      if (missedPings > MISSED_PINGS) return false
      source.ping()
      return true
    },
  }
}
