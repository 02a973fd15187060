// The HTTP/2 session of a tunnel, with the coordinator as the client. It is opened by the first request, and closed when
// it has not been used for some minutes: a session occupies some 20 KiB.
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { ApiError } from '../../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import { formatMessage } from '../../../shared/tunnel-messages.ts'
import { WebSocketDuplex } from '../../../shared/websocket-duplex.ts'
import { unlessAborted } from '../../base/unless-aborted.ts'
import { createHttp2FrameCounter } from './http2-frame-counter.ts'
import { sendRequest } from './request.ts'
import type { TunnelRequest, TunnelResponse } from './types.ts'

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
const IDLE_MS = 5 * 60_000
/** How long an agent may take to close its side. */
const CLOSE_TIMEOUT_MS = 30_000

type OpenSession = { h2: ClientHttp2Session; duplex: WebSocketDuplex; countFrames(data: Buffer): number }

export class Http2Client {
  readonly #ws: WebSocket
  readonly #onFailure: (reason: string) => void
  #session: OpenSession | undefined
  /** Resolves when the agent has closed its side of the previous session. */
  #closing: PromiseWithResolvers<void> | undefined
  #openStreams = 0
  /** How long the session has had no streams, or the agent has not closed its side. */
  #idleMs = 0
  #isDestroyed = false

  /** @param onFailure called when the agent has closed the session, or has violated the protocol */
  constructor(ws: WebSocket, onFailure: (reason: string) => void) {
    this.#ws = ws
    this.#onFailure = onFailure
  }

  /** Resolves when the agent has sent its settings. */
  async open(): Promise<void> {
    const { h2 } = this.#openSession()
    await new Promise<void>((resolve) => h2.once('remoteSettings', () => resolve()))
  }

  /** @param onDone called once, when the stream has closed */
  async request(request: TunnelRequest, onDone: () => void): Promise<TunnelResponse> {
    this.#openStreams += 1
    const onClose = () => {
      this.#openStreams -= 1
      this.#idleMs = 0
      onDone()
    }
    try {
      if (this.#closing !== undefined) await unlessAborted(this.#closing.promise, request.signal)
      if (this.#isDestroyed) throw new ApiError('box_unreachable')
    } catch (error) {
      onClose()
      throw error
    }
    return sendRequest(this.#openSession().h2, request, onClose)
  }

  /** Returns the number of frames that begin in the data. */
  countFrames(data: Buffer): number {
    return this.#session?.countFrames(data) ?? 0
  }

  /** Receives a binary message. */
  receive(data: Buffer): void {
    if (this.#session !== undefined) this.#session.duplex.receive(data)
    // Until the agent has closed its side, frames of the previous session may arrive.
    else if (this.#closing === undefined) this.#onFailure('the agent sent HTTP/2 frames without a session')
  }

  /** Call it periodically. Closes the session when it has not been used for some minutes. */
  closeWhenIdle(elapsedMs: number): void {
    this.#idleMs += elapsedMs
    if (this.#closing !== undefined) {
      if (this.#idleMs > CLOSE_TIMEOUT_MS) this.#onFailure('the agent did not close its HTTP/2 session')
      return
    }
    if (this.#session === undefined || this.#openStreams > 0 || this.#idleMs < IDLE_MS) return
    this.#closing = Promise.withResolvers()
    this.#idleMs = 0
    this.#destroySession()
    this.#ws.send(formatMessage({ type: 'http2.close' }))
  }

  /** The agent has closed its side of the session. */
  onAgentClosed(): void {
    if (this.#closing === undefined) this.#onFailure('the agent closed an HTTP/2 session that is in use')
    this.#closing?.resolve()
    this.#closing = undefined
  }

  destroy(): void {
    this.#isDestroyed = true
    this.#destroySession()
    this.#closing?.resolve()
  }

  #openSession(): OpenSession {
    if (this.#session !== undefined) return this.#session
    const duplex = new WebSocketDuplex(this.#ws)
    const h2 = connectHttp2(() => duplex)
    const session = { h2, duplex, countFrames: createHttp2FrameCounter() }
    const fail = (reason: string) => {
      if (this.#session === session) this.#onFailure(reason)
    }
    h2.on('error', (error) => fail(`HTTP/2: ${error.message}`))
    h2.once('goaway', (code) => fail(`the agent sent GOAWAY (code ${code})`))
    h2.once('close', () => fail('the HTTP/2 session closed'))
    duplex.on('error', (error) => fail(error.message))
    this.#session = session
    this.#idleMs = 0
    return session
  }

  #destroySession(): void {
    const session = this.#session
    this.#session = undefined
    session?.h2.destroy()
    session?.duplex.destroy()
  }
}

function connectHttp2(createConnection: () => Duplex): ClientHttp2Session {
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
  h2.once('connect', () => {
    if (!h2.destroyed) h2.setLocalWindowSize(SESSION_WINDOW)
  })
  return h2
}
