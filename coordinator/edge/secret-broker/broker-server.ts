// Ends the connections of programs on boxes to hosts of secrets, and forwards their requests with the values of the secrets.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import type { Clock } from '../../../shared/clock.ts'
import { TcpOverWebSocket } from '../../../shared/tcp-over-websocket.ts'
import { RejectedUpgrade } from '../../agents/tunnel/secret-sockets.ts'
import type { SecretConnectionServer } from '../../agents/tunnel/types.ts'
import { createLineLimiter } from '../../base/log/line-limiter.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import { isForwardableUpgrade } from '../../http/forward/forwardable.ts'
import { closeAfterEarlyResponse } from '../../http/lingering-close.ts'
import { getUpgrade, isWebSocketUpgrade, serveUpgrade } from '../../http/websocket.ts'
import type { LeafCertificate, SecretBroker, WorkspaceAuthorities } from '../../secrets/types.ts'
import { CONNECTION_MESSAGES } from '../connect-to-port.ts'
import { type BrokerConnection, BrokerConnections } from './broker-connections.ts'
import { BrokerError, formatBrokerError, sendBrokerError } from './broker-error.ts'
import { isHostName } from './host-name.ts'
import { BrokerMetrics } from './metrics.ts'
import { createRequestLimiter } from './request-limits.ts'
import { serveRequest } from './serve-request.ts'
import { endTls } from './tls-end.ts'
import { type UpstreamAgentOptions, UpstreamAgents, type UpstreamPool } from './upstream-agents.ts'
import { ValueCache } from './value-cache.ts'

export type BrokerServerOptions = {
  broker: SecretBroker
  authorities: WorkspaceAuthorities
  upstream: UpstreamAgentOptions
  log: Logger
  clock: Clock
  headersTimeoutMs: number
  idleTimeoutMs: number
}

const MAX_HEADER_BYTES = 32 * 1024
/** Requests without a response on one connection. No common client sends more than one. */
const MAX_PIPELINED = 2
const MAX_CHECK_INTERVAL_MS = 5_000
/** How long requests in flight may continue when the coordinator stops. */
const DRAIN_MS = 2_000
const DRAIN_POLL_MS = 20

export class BrokerServer implements SecretConnectionServer {
  readonly #options: BrokerServerOptions
  readonly #connections = new BrokerConnections()
  readonly #byStream = new WeakMap<Duplex, { connection: BrokerConnection; upstream: UpstreamPool }>()
  readonly #upstreamAgents: UpstreamAgents
  readonly #http: Server
  readonly #values: ValueCache
  readonly #messages
  readonly #requestLimiter
  readonly #limitLines
  readonly #metrics = new BrokerMetrics()
  readonly metrics = this.#metrics.list(() => this.#connections.all.length)
  #isStopping = false

  constructor(options: BrokerServerOptions) {
    this.#options = options
    this.#upstreamAgents = new UpstreamAgents(options.upstream)
    this.#values = new ValueCache(options.clock)
    this.#messages = createTokenBuckets(options.clock, CONNECTION_MESSAGES)
    this.#requestLimiter = createRequestLimiter(options.clock, this.#connections)
    this.#limitLines = createLineLimiter(options.clock)
    this.#http = this.#createHttpServer()
    options.broker.events.on('cut', this.#connections.cut)
    options.broker.events.on('missed', this.#checkAll)
  }

  #createHttpServer(): Server {
    const { headersTimeoutMs, idleTimeoutMs } = this.#options
    const server = createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headersTimeoutMs,
      requestTimeout: 0,
      keepAliveTimeout: idleTimeoutMs,
      connectionsCheckingInterval: Math.min(MAX_CHECK_INTERVAL_MS, headersTimeoutMs),
      // checkRequest() requires it.
      requireHostHeader: false,
      // Also where --insecure-http-parser is set.
      insecureHTTPParser: false,
      // Other upgrades, such as h2c, are ignored.
      shouldUpgradeCallback: (request) =>
        request.method === 'GET' && isWebSocketUpgrade(request) && isForwardableUpgrade(request),
    })
    server.on('request', (request, response) => this.#serve(request, response))
    // The host decides whether the client sends the body.
    server.on('checkContinue', (request, response) => this.#serve(request, response))
    server.on('upgrade', (request, socket, head) =>
      serveUpgrade(request, socket, head, (_, response) => this.#serve(request, response)),
    )
    server.on('clientError', (error, socket) => this.#rejectInvalidRequest(error, socket))
    // Without this event, which listen() emits, Node does not enforce the timeouts.
    server.emit('listening')
    return server
  }

  /** Each request reads the mounts, but an upgraded connection is never checked again. */
  readonly #checkAll = (): void => {
    for (const connection of this.#connections.all)
      if (connection.isUpgraded) connection.close()
      else void this.#check(connection)
  }

  /** Closes the connection when no mount covers its host any more, or the mounts cannot be read. The client connects again. */
  async #check(connection: BrokerConnection): Promise<void> {
    const { boxId, host } = connection
    const found = await this.#options.broker.find(boxId, host).catch(() => null)
    if (found === null) connection.close()
  }

  readonly admit = async (boxId: string, host: string): Promise<(ws: WebSocket) => void> => {
    if (this.#isStopping)
      throw new RejectedUpgrade({
        status: 503,
        code: 'control_plane_unavailable',
        message: 'The coordinator is stopping. Try again.',
      })
    // A cut while the mounts are read closes the connection too.
    const connection = this.#connections.open(boxId, host)
    try {
      const found = isHostName(host) ? await this.#options.broker.find(boxId, host) : null
      const leaf = found && (await this.#options.authorities.getLeaf(found.workspaceId, host))
      if (leaf === null || connection.isClosed)
        throw new RejectedUpgrade({
          status: 403,
          code: 'host_not_brokered',
          message: 'No secret that is mounted on the box has this host.',
        })
      return (ws) => this.#start(boxId, host, leaf, ws)
    } finally {
      this.#connections.delete(connection)
    }
  }

  #start(boxId: string, host: string, leaf: LeafCertificate, ws: WebSocket): void {
    const connection = this.#connections.open(boxId, host)
    const stream = new TcpOverWebSocket(ws, {
      respondsToPings: true,
      countMessage: () => this.#messages.spend(boxId, 1),
    })
    // 'close' follows.
    stream.on('error', () => undefined)
    const upstream = this.#upstreamAgents.acquire(boxId, host)
    stream.once('close', () => {
      this.#connections.delete(connection)
      upstream.release({ isCut: connection.isClosed })
      connection.close()
    })
    connection.add(stream)
    endTls(stream, {
      host,
      leaf,
      handshakeTimeoutMs: this.#options.headersTimeoutMs,
      onSecure: (socket) => this.#startHttp(socket, connection, upstream),
      onFailure: (err) => {
        const { code } = err as NodeJS.ErrnoException
        this.#options.log.debug({ boxId, host, code }, 'TLS with a program of the box failed')
      },
    })
  }

  #startHttp(socket: TLSSocket, connection: BrokerConnection, upstream: UpstreamPool): void {
    connection.add(socket)
    this.#byStream.set(socket, { connection, upstream })
    if (this.#isStopping) connection.close()
    else this.#http.emit('connection', socket)
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const entry = this.#byStream.get(request.socket)
    if (entry === undefined) return void request.socket.destroy()
    const { connection, upstream } = entry
    if (connection.requests >= MAX_PIPELINED) return void connection.close()
    connection.requests += 1
    response.once('close', () => {
      connection.requests -= 1
    })
    if (getUpgrade(request) === undefined) closeAfterEarlyResponse(request, response)
    if (this.#isStopping) response.shouldKeepAlive = false
    const { broker } = this.#options
    const { boxId, host } = connection
    const log = { boxId, host, method: request.method }
    const excess = this.#requestLimiter.check(connection)
    if (excess !== null) return void this.#fail(response, excess, log)
    serveRequest(request, response, { connection, broker, upstream, values: this.#values }).then(
      (result) => {
        this.#metrics.count(result)
        this.#options.log.debug({ ...log, status: response.statusCode }, 'forwarded a request of a box')
      },
      (error: unknown) => this.#fail(response, error, log),
    )
  }

  #fail(response: ServerResponse, error: unknown, log: { boxId: string; host: string }): void {
    // The program has closed the connection.
    if (response.destroyed) return
    const isKnown = error instanceof BrokerError
    const reported = isKnown
      ? error
      : new BrokerError('broker_unavailable', 'The coordinator failed to forward the request. Try again.')
    this.#metrics.count(reported.status < 500 ? 'refused' : 'failed')
    const line = this.#limitLines(`${reported.code} ${log.boxId}`)
    const { status, code, message: reason } = reported
    const fields = { ...log, status, code, reason, ...line }
    if (!isKnown) this.#options.log.error({ ...fields, err: error }, 'failed to forward a request of a box')
    else if (line !== null) this.#options.log.info(fields, 'refused or failed to forward a request of a box')
    sendBrokerError(response, reported)
  }

  #rejectInvalidRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    this.#metrics.count('refused')
    socket.end(formatBrokerError(describeParseError(error)))
    socket.once('finish', () => socket.destroy())
  }

  /** Accepts no new connections, and closes the connections without a request. */
  beginStop(): void {
    this.#isStopping = true
    for (const connection of this.#connections.all) if (connection.requests === 0) connection.close()
  }

  /** Waits for the requests in flight. Upgraded connections are not waited for. */
  async drain(): Promise<void> {
    const deadline = performance.now() + DRAIN_MS
    const isBusy = () => this.#connections.all.some(({ requests, isUpgraded }) => requests > 0 && !isUpgraded)
    while (isBusy() && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  }

  close(): void {
    this.#isStopping = true
    this.#options.broker.events.off('cut', this.#connections.cut)
    this.#options.broker.events.off('missed', this.#checkAll)
    for (const connection of this.#connections.all) connection.close()
    this.#upstreamAgents.close()
    this.#values.close()
    this.#http.close()
  }
}

function describeParseError({ code }: NodeJS.ErrnoException): BrokerError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new BrokerError('headers_too_large', `The headers are larger than ${MAX_HEADER_BYTES / 1024} KiB.`)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new BrokerError('request_timeout', 'The headers arrived too slowly.')
  return new BrokerError('bad_request', 'The request is not valid HTTP/1.1.')
}
