// The HTTP proxy of a box, which programs find by HTTPS_PROXY. It only has the method CONNECT: it carries the bytes of TLS, and
// reads none of them.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { joinConnections } from '../../shared/join-connections.ts'
import type { WebSocketDialer } from '../tunnel/websocket-dialer.ts'
import { type ConnectTarget, isBrokered, parseConnectTarget } from './connect-target.ts'
import { isAuthorized } from './credential.ts'
import { dialCoordinator, dialTarget } from './dial.ts'
import type { PeerCheck } from './peer-check.ts'
import { formatRefusal, Refusal, refuse } from './refusal.ts'

export type ListenerOptions = {
  /** 0: any free port. */
  port: number
  credential: string
  /** The hosts of the mounted secrets at the moment. */
  readPatterns(): readonly string[]
  dialer: Pick<WebSocketDialer, 'connect'>
  isPermitted: PeerCheck
  log: Pick<Logger, 'debug' | 'warn'>
  retryMs?: number | undefined
}

export type Listener = {
  readonly port: number
  /** Resets all connections. */
  close(): Promise<void>
}

const HOST = '127.0.0.1'
/** Connections of programs. Each takes two descriptors of the agent. */
const MAX_CONNECTIONS = 2048
const HEADERS_TIMEOUT_MS = 10_000
const MAX_HEADER_BYTES = 16 * 1024
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n'

/** @throws system errors, such as EADDRINUSE */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { credential, readPatterns, dialer, isPermitted, log, retryMs } = options
  const sockets = new Set<Socket>()
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: HEADERS_TIMEOUT_MS / 2,
    noDelay: true,
  })
  server.maxConnections = MAX_CONNECTIONS

  async function open(target: ConnectTarget, request: IncomingMessage, signal: AbortSignal): Promise<Duplex> {
    if (!isBrokered(target, readPatterns())) {
      // The permitted users can open the same connection themselves, so they need no credential: browsers send none.
      return dialTarget(target, signal)
    }
    if (!isAuthorized(request.headers['proxy-authorization'], credential))
      throw new Refusal(
        407,
        `the proxy needs the credential in the variable HTTPS_PROXY to connect to ${target.host}.`,
      )
    return dialCoordinator(target, { dialer, signal, retryMs })
  }

  async function serve(request: IncomingMessage, socket: Socket): Promise<void> {
    if (!(await isPermitted(socket))) throw new Refusal(403, 'this proxy belongs to a box of another user.')
    const target = parseConnectTarget(request.url)
    if (target === undefined) throw new Refusal(400, 'the target of CONNECT must be a host and a port.')
    const closing = new AbortController()
    const onClose = () => closing.abort()
    socket.once('close', onClose)
    // A socket may have many refused requests.
    const connection = await open(target, request, closing.signal).finally(() => socket.off('close', onClose))
    socket.write(ESTABLISHED)
    joinConnections(socket, connection)
  }

  server.on('connection', (socket: Socket) => {
    if (sockets.has(socket)) return
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // The HTTP server has removed its listener. 'close' follows.
    const ignore = () => undefined
    socket.on('error', ignore)
    // A client may send the first bytes of TLS with the request.
    if (head.length > 0) socket.unshift(head)
    serve(request, socket).catch((error: unknown) => {
      if (socket.destroyed) return
      if (!(error instanceof Refusal)) {
        log.warn({ err: error }, 'failed to serve a connection to the proxy of the box')
        return void socket.destroy()
      }
      log.debug(
        { status: error.status, reason: error.message },
        'refused a connection to the proxy of the box',
      )
      if (error.status !== 407) return refuse(socket, error)
      // git and curl send the credential on the same connection after this response, which must leave it open.
      socket.off('error', ignore)
      socket.write(formatRefusal(error, 'Proxy-Authenticate: Basic realm="boxwood"\r\n'))
      server.emit('connection', socket)
    })
  })
  server.on('request', refuseRequest)
  server.listen(options.port, HOST)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.resetAndDestroy()
      await closed
    },
  }
}

/** Programs use this proxy for plain HTTP only when something else configures it. */
function refuseRequest(_request: IncomingMessage, response: ServerResponse): void {
  const text =
    'boxwood: this proxy only connects to HTTPS servers (CONNECT): secrets are not sent over plain HTTP. Use https, or add the host to NO_PROXY.\n'
  response.writeHead(405, { Allow: 'CONNECT', 'Content-Type': 'text/plain', Connection: 'close' }).end(text)
}
