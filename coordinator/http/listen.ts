// Opens the listening socket first, so that a port in use fails the start early. Until the request listener is set,
// requests get 503.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { HTTP_LIMITS } from '../../shared/limits.ts'
import { StartError } from '../base/start-error.ts'
import { type ConnectionCounts, Connections } from './connections.ts'
import { MAX_HEADER_BYTES } from './large-requests.ts'

export type Address = {
  host: string
  port: number
  /** A listening socket that this process has inherited: `host` and `port` are not used. */
  fd?: number
}

export type ConnectionLimits = ConnectionCounts & {
  headersTimeoutSeconds: number
  idleTimeoutSeconds: number
}

const DEFAULT_LIMITS: ConnectionLimits = {
  maxConnections: HTTP_LIMITS.connections.default,
  addressConnections: HTTP_LIMITS.addressConnections.default,
  headersTimeoutSeconds: HTTP_LIMITS.headersSeconds.default,
  idleTimeoutSeconds: HTTP_LIMITS.idleSeconds.default,
}
/** How often Node checks for connections whose headers are late. */
const MAX_CHECK_INTERVAL_MS = 5_000

export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export type Listening = {
  server: Server
  connections: Connections
  /** The origin at which programs on this machine reach the server. */
  url: string
  /** All further requests go to `listener`. */
  setRequestListener(listener: (request: IncomingMessage, response: ServerResponse) => void): void
  /** Upgrade requests that `accepts` returns true for go to `listener`. */
  setUpgradeListener(accepts: (request: IncomingMessage) => boolean, listener: UpgradeListener): void
  /** Requests with `Expect: 100-continue` that `accepts` returns true for get this response at once. Default: all. */
  setContinueFilter(accepts: (request: IncomingMessage) => boolean): void
}

/**
 * Throws StartError when the address cannot be used.
 * @param variable the environment variable of the address, for error messages
 */
export async function listen(
  { host, port, fd }: Address,
  limits: ConnectionLimits = DEFAULT_LIMITS,
  variable = 'BOXWOOD_LISTEN',
): Promise<Listening> {
  const headersTimeoutMs = limits.headersTimeoutSeconds * 1000
  let acceptsUpgrade: (request: IncomingMessage) => boolean = () => false
  let acceptsContinue: (request: IncomingMessage) => boolean = () => true
  const server: Server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: headersTimeoutMs,
    requestTimeout: 0,
    keepAliveTimeout: limits.idleTimeoutSeconds * 1000,
    connectionsCheckingInterval: Math.min(MAX_CHECK_INTERVAL_MS, headersTimeoutMs),
    noDelay: true,
    // Other upgrade offers, such as curl's h2c, are ignored: the request is served as plain HTTP/1.1.
    shouldUpgradeCallback: (request) => acceptsUpgrade(request),
  })
  const connections = new Connections(limits)
  server.on('connection', (socket) => connections.add(socket))
  server.on('request', (request, response) => connections.observe(request, response))
  server.on('upgrade', (request) => connections.observe(request))
  server.on('checkContinue', (request, response) => {
    if (acceptsContinue(request)) response.writeContinue()
    server.emit('request', request, response)
  })
  server.on('request', respondStarting)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(createListenError(error, { host, port }, variable)),
    )
    server.listen(fd === undefined ? { port, host } : { fd }, resolve)
  })
  const address = server.address() as AddressInfo
  return {
    server,
    connections,
    url: `http://${formatAuthority(fd === undefined ? host : address.address, address.port)}`,
    setRequestListener(listener) {
      server.off('request', respondStarting)
      server.on('request', listener)
    },
    setUpgradeListener(accepts, listener) {
      acceptsUpgrade = accepts
      server.on('upgrade', listener)
    },
    setContinueFilter(accepts) {
      acceptsContinue = accepts
    },
  }
}

export const getRequestPath = (request: IncomingMessage): string => request.url?.split('?', 1)[0] ?? ''

export const isWildcard = (host: string): boolean => host === '0.0.0.0' || /^[0:]*::[0:]*$/.test(host)

/** Clients cannot connect to a wildcard address, so it is replaced by the loopback address. */
export function formatAuthority(host: string, port: number): string {
  if (host.includes(':')) return `[${isWildcard(host) ? '::1' : host}]:${port}`
  return `${isWildcard(host) ? '127.0.0.1' : host}:${port}`
}

/** As the route /readyz answers before the coordinator is ready. */
const STARTING = { ok: false, reason: 'starting' }

function respondStarting(request: IncomingMessage, response: ServerResponse): void {
  const path = getRequestPath(request)
  const isLivenessCheck = path === '/healthz'
  const body = isLivenessCheck
    ? { ok: true }
    : path === '/readyz'
      ? STARTING
      : { error: 'control_plane_unavailable', message: 'The coordinator is starting. Try again.' }
  response
    .writeHead(isLivenessCheck ? 200 : 503, {
      'content-type': 'application/json; charset=utf-8',
      'retry-after': '1',
      connection: 'close',
    })
    .end(JSON.stringify(body))
}

const LISTEN_PROBLEMS: Record<string, string> = {
  EADDRINUSE: 'another program already uses this port. Stop it, or set another address',
  EADDRNOTAVAIL: 'this machine does not have this address. Set another one',
  ENOTFOUND: 'the host name cannot be resolved. Set another one',
  EACCES: 'this user may not use this port. Set a port of 1024 or above',
}

export function createListenError(
  error: NodeJS.ErrnoException,
  { host, port }: Address,
  variable: string,
): StartError {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const problem = LISTEN_PROBLEMS[error.code ?? ''] ?? `${error.message}. Set another address`
  return new StartError(`The coordinator cannot listen on ${address}: ${problem} in ${variable}.`, {
    cause: error,
  })
}
