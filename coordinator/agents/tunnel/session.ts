// One agent's connection: HTTP/2 over its WebSocket, with the coordinator as the client.
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { ApiError } from '../../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import { checkLiveness, type LivenessSettings, newLivenessState } from '../../../shared/liveness.ts'
import { websocketDuplex } from '../../../shared/websocket-duplex.ts'
import type { BoxLimits } from './box-limits.ts'
import { createHttp2FrameCounter } from './http2-frame-counter.ts'
import { sendRequest } from './request.ts'
import type { Tunnel, TunnelRequest, TunnelRequestObserver, TunnelResponse } from './types.ts'

const KiB = 1024
const MiB = 1024 * KiB
/** Flow-control windows of one stream and of the session. The session's bounds what a box can make us buffer. */
const STREAM_WINDOW = MiB
const SESSION_WINDOW = 16 * MiB
const FRAME_BYTES = 256 * KiB
/** Bounds response headers; the agent's own have some 200 bytes. */
const MAX_HEADER_BYTES = 8 * KiB
const MAX_HEADER_COUNT = 64
/** Node applies these to clients too; its types list them for servers only. */
const FLOOD_LIMITS = { maxSessionInvalidFrames: 10, maxSessionRejectedStreams: 10 }
/** A larger send buffer means that the agent has stopped reading. */
const MAX_UNSENT_BYTES = 32 * MiB
/** How long a closing connection stays open for an agent that does not respond. */
const LINGER_MS = 1_000

export type Identity = Pick<
  Tunnel,
  'boxId' | 'generation' | 'instanceId' | 'agentVersion' | 'protocolVersion' | 'failedBuild' | 'platform'
>

export type SessionOptions = {
  ws: WebSocket
  socket: Socket
  identity: Identity
  liveness: LivenessSettings
  random: () => number
  limits: Pick<BoxLimits, 'allowMessages' | 'allowControlFrame' | 'expectResponse' | 'backOff'>
  /** Observes the requests of clients. */
  observeRequest?: TunnelRequestObserver | undefined
}

export type Session = Tunnel & {
  /** Resolves when the agent has sent its HTTP/2 settings. Rejects when the session closes before. */
  readonly ready: Promise<void>
  /** Resolves with the reason when the session has closed. */
  readonly closed: Promise<string>
  /** Sends a request that no client made. Unlike request(), it does not raise the limit of the box's messages. */
  requestReports: Tunnel['request']
  /** Whether the agent sends anything within `ms` after a ping. */
  isResponsive(ms: number): Promise<boolean>
  /** Aborts when the session accepts no more requests: retired or closed. */
  readonly retiring: AbortSignal
  /** Requests whose response has not been read to its end. */
  inFlight(): number
  /** One step of the liveness check. */
  runLivenessCheck(elapsedMs: number): void
  /** Rejects further requests. */
  retire(): void
  /** Sends the agent its reconnect delay, and waits for the agent to close the connection. */
  closeForReconnect(reconnectAfterMs: number): void
  /** Sends the agent its reconnect delay, also to a frozen agent, and closes the session immediately. */
  destroyForReconnect(reconnectAfterMs: number, reason: string): void
  destroy(reason: string): void
}

export function openSession(options: SessionOptions): Session {
  const { ws, socket, identity, liveness, random, limits, observeRequest } = options
  const { boxId } = identity
  const countFrames = createHttp2FrameCounter()
  // This listener runs before the listener of the duplex, so frames are counted before they are parsed.
  ws.on('message', (data: Buffer) => {
    if (!limits.allowMessages(boxId, 1 + countFrames(data))) disconnectFlood('messages')
  })
  const duplex = websocketDuplex(ws)
  const h2 = openHttp2(() => duplex)
  const livenessState = newLivenessState(liveness, random)
  const retirement = new AbortController()
  let closeReason: string | undefined
  let inFlight = 0

  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<string>()
  const destroy = (reason: string) => {
    if (closeReason !== undefined) return
    closeReason = reason
    retirement.abort()
    h2.destroy()
    ws.terminate()
    resolveClosed(reason)
  }
  function disconnectFlood(what: string): void {
    if (closeReason !== undefined) return
    destroy(`the agent sent too many ${what}`)
    limits.backOff(boxId)
  }
  h2.on('error', (error) => destroy(`HTTP/2: ${error.message}`))
  h2.once('goaway', (code) => destroy(`the agent sent GOAWAY (code ${code})`))
  h2.once('close', () => destroy('the connection closed'))
  ws.on('error', (error) => destroy(`WebSocket: ${error.message}`))
  ws.once('close', (code) => destroy(`the connection closed (code ${code})`))
  duplex.on('error', (error) => destroy(error.message))
  // The listener replaces autoPong, which would answer the pings of a flood.
  ws.on('ping', (data) => {
    if (limits.allowControlFrame(boxId)) ws.pong(data)
    else disconnectFlood('pings')
  })
  ws.on('pong', () => {
    if (!limits.allowControlFrame(boxId)) disconnectFlood('pongs')
  })

  function closeForReconnect(reconnectAfterMs: number): void {
    retirement.abort()
    ws.close(1012, JSON.stringify({ reconnectAfterMs }))
  }

  const ready = new Promise<void>((resolve, reject) => {
    h2.once('remoteSettings', () => resolve())
    void closed.then((reason) =>
      reject(new ApiError('box_unreachable', undefined, { cause: new Error(reason) })),
    )
  })
  ready.catch(() => undefined)

  function send(request: TunnelRequest): Promise<TunnelResponse> {
    if (retirement.signal.aborted) return Promise.reject(new ApiError('box_unreachable'))
    inFlight += 1
    return sendRequest(h2, request, () => {
      inFlight -= 1
    })
  }

  return {
    ...identity,
    ready,
    closed,
    retiring: retirement.signal,
    request(request) {
      limits.expectResponse(boxId)
      return observeRequest ? observeRequest(request, () => send(request)) : send(request)
    },
    requestReports: send,
    isResponsive(ms) {
      const bytesBefore = socket.bytesRead
      return new Promise((resolve) => {
        const settle = (isAlive: boolean) => {
          clearTimeout(timer)
          ws.off('pong', onPong)
          resolve(isAlive)
        }
        const onPong = () => settle(true)
        const timer = setTimeout(() => settle(socket.bytesRead !== bytesBefore), ms)
        ws.on('pong', onPong)
        void closed.then(() => settle(false))
        if (ws.readyState === ws.OPEN) ws.ping()
      })
    },
    inFlight: () => inFlight,
    runLivenessCheck(elapsedMs) {
      if (ws.bufferedAmount > MAX_UNSENT_BYTES) return destroy('the agent does not read')
      const observed = { bytes: socket.bytesRead, elapsedMs }
      const verdict = checkLiveness(livenessState, observed, liveness, random)
      if (verdict === 'dead') destroy('liveness timeout')
      if (verdict === 'ping' && ws.readyState === ws.OPEN) ws.ping()
    },
    retire: () => retirement.abort(),
    closeForReconnect,
    destroyForReconnect(reconnectAfterMs, reason) {
      if (closeReason !== undefined) return
      closeReason = reason
      closeForReconnect(reconnectAfterMs)
      h2.destroy()
      resolveClosed(reason)
      setTimeout(() => ws.terminate(), LINGER_MS).unref()
    },
    destroy,
  }
}

function openHttp2(createConnection: () => Duplex): ClientHttp2Session {
  const h2 = connect('http://box', {
    createConnection,
    maxSessionMemory: 32,
    maxHeaderListPairs: MAX_HEADER_COUNT,
    ...FLOOD_LIMITS,
    maxOutstandingPings: 4,
    peerMaxConcurrentStreams: TUNNEL_LIMITS.streams,
    settings: {
      enablePush: false,
      initialWindowSize: STREAM_WINDOW,
      maxFrameSize: FRAME_BYTES,
      maxHeaderListSize: MAX_HEADER_BYTES,
    },
  })
  h2.once('connect', () => h2.setLocalWindowSize(SESSION_WINDOW))
  return h2
}
