// One agent's connection: HTTP/2 over its WebSocket, with the coordinator as the client.
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { ApiError } from '../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { checkPulse, type LivenessSettings, newPulse } from '../../shared/liveness.ts'
import { websocketDuplex } from '../../shared/websocket-duplex.ts'
import { sendRequest } from './request.ts'
import type { Tunnel } from './types.ts'

const KiB = 1024
const MiB = 1024 * KiB
/** What a stream may have in flight, and a session in all: the second bounds what a box can make us buffer. */
const STREAM_WINDOW = MiB
const SESSION_WINDOW = 16 * MiB
const FRAME_BYTES = 256 * KiB
/** Of a response: the agent's own are some 200 bytes. */
const HEADER_BYTES = 8 * KiB
const HEADER_COUNT = 64
/** Known to Node for clients too, though not to its types. */
const FLOOD_LIMITS = { maxSessionInvalidFrames: 10, maxSessionRejectedStreams: 10 }
/** More than this unsent means the box has stopped reading, whatever TCP says. */
const MAX_UNSENT_BYTES = 32 * MiB

export type Identity = Pick<Tunnel, 'boxId' | 'generation' | 'instanceId' | 'agentVersion'>

export type SessionOptions = {
  ws: WebSocket
  socket: Socket
  identity: Identity
  liveness: LivenessSettings
  random: () => number
}

export type Session = Tunnel & {
  /** Settles when the agent has spoken HTTP/2; rejects when the session ends before. */
  readonly ready: Promise<void>
  /** Settles with the reason when the session has ended. */
  readonly ended: Promise<string>
  /** Whether the peer shows any sign of life within `ms`. */
  answers(ms: number): Promise<boolean>
  /** Aborts when the session takes no more requests: it was retired, sent away, or has ended. */
  readonly retiring: AbortSignal
  /** Requests whose answer has not been read to its end. */
  inFlight(): number
  /** One step of the liveness check. */
  check(elapsedMs: number): void
  /** Takes no more requests. */
  retire(): void
  /** Says goodbye: the agent comes back after `reconnectAfterMs`. */
  sendAway(reconnectAfterMs: number): void
  destroy(reason: string): void
}

export function openSession({ ws, socket, identity, liveness, random }: SessionOptions): Session {
  const duplex = websocketDuplex(ws)
  const h2 = openHttp2(() => duplex)
  const pulse = newPulse(liveness, random)
  const retirement = new AbortController()
  let endedBy: string | undefined
  let inFlight = 0

  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const destroy = (reason: string) => {
    if (endedBy !== undefined) return
    endedBy = reason
    retirement.abort()
    h2.destroy()
    ws.terminate()
    end(reason)
  }
  h2.on('error', (error) => destroy(`HTTP/2: ${error.message}`))
  h2.once('goaway', (code) => destroy(`the agent ended the session (code ${code})`))
  h2.once('close', () => destroy('the connection ended'))
  ws.on('error', (error) => destroy(`WebSocket: ${error.message}`))
  ws.once('close', (code) => destroy(`the connection ended (code ${code})`))
  duplex.on('error', (error) => destroy(error.message))
  // ws would queue a pong for each ping, for a peer that floods and never reads, without bound.
  ws.on('ping', (data) => {
    if (ws.bufferedAmount < MiB) ws.pong(data)
  })

  const ready = new Promise<void>((resolve, reject) => {
    h2.once('remoteSettings', () => resolve())
    void ended.then((reason) =>
      reject(new ApiError('box_unreachable', undefined, { cause: new Error(reason) })),
    )
  })
  ready.catch(() => undefined)

  return {
    ...identity,
    ready,
    ended,
    retiring: retirement.signal,
    request(request) {
      if (retirement.signal.aborted) return Promise.reject(new ApiError('box_unreachable'))
      inFlight += 1
      return sendRequest(h2, request, () => {
        inFlight -= 1
      })
    },
    answers(ms) {
      const before = socket.bytesRead
      return new Promise((resolve) => {
        const settle = (alive: boolean) => {
          clearTimeout(timer)
          ws.off('pong', onPong)
          resolve(alive)
        }
        const onPong = () => settle(true)
        const timer = setTimeout(() => settle(socket.bytesRead !== before), ms)
        ws.on('pong', onPong)
        void ended.then(() => settle(false))
        if (ws.readyState === ws.OPEN) ws.ping()
      })
    },
    inFlight: () => inFlight,
    check(elapsedMs) {
      if (ws.bufferedAmount > MAX_UNSENT_BYTES) return destroy('the agent does not read')
      const verdict = checkPulse(pulse, { bytes: socket.bytesRead, elapsedMs }, liveness, random)
      if (verdict === 'dead') destroy('the agent went silent')
      if (verdict === 'ping' && ws.readyState === ws.OPEN) ws.ping()
    },
    retire: () => retirement.abort(),
    sendAway(reconnectAfterMs) {
      retirement.abort()
      ws.close(1012, JSON.stringify({ reconnectAfterMs }))
    },
    destroy,
  }
}

function openHttp2(createConnection: () => Duplex): ClientHttp2Session {
  const h2 = connect('http://box', {
    createConnection,
    maxSessionMemory: 32,
    maxHeaderListPairs: HEADER_COUNT,
    ...FLOOD_LIMITS,
    maxOutstandingPings: 4,
    peerMaxConcurrentStreams: TUNNEL_LIMITS.streams,
    settings: {
      enablePush: false,
      initialWindowSize: STREAM_WINDOW,
      maxFrameSize: FRAME_BYTES,
      maxHeaderListSize: HEADER_BYTES,
    },
  })
  h2.once('connect', () => h2.setLocalWindowSize(SESSION_WINDOW))
  return h2
}
