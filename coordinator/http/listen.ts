// The socket: taken before anything else is, so that a port in use is found out first. Until there is more to say
// it answers that the coordinator is starting.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { STREAM_PATH, TUNNEL_PATH } from '../../shared/protocol.ts'
import { StartError } from '../start-error.ts'

/** A request line and headers must have come by then; bodies have clocks of their own. */
const HEADERS_MS = 20_000
const KEEP_ALIVE_MS = 75_000
/** A path of 4096 bytes, each percent-encoded, and the rest. */
const MAX_HEADER_BYTES = 32 * 1024

export type Address = { host: string; port: number }

export type Listening = {
  server: Server
  /** As a program on this machine reaches it: an origin. */
  url: string
  /** All further requests go to `handle`. */
  handOver(handle: (request: IncomingMessage, response: ServerResponse) => void): void
}

/** Throws StartError when the address cannot be had. */
export async function listen({ host, port }: Address): Promise<Listening> {
  const server: Server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: 5_000,
    noDelay: true,
    // Any other offer to change protocols, such as curl's h2c, is declined by answering in HTTP/1.1.
    shouldUpgradeCallback: (request) =>
      server.listenerCount('upgrade') > 0 && isOpenedByAgents(pathOf(request)),
  })
  server.on('request', answerStarting)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(error, { host, port })))
    server.listen(port, host, resolve)
  })
  const address = server.address() as AddressInfo
  return {
    server,
    url: `http://${authority(host, address.port)}`,
    handOver(handle) {
      server.off('request', answerStarting)
      server.on('request', handle)
    },
  }
}

const isOpenedByAgents = (path: string) => path === TUNNEL_PATH || path.startsWith(STREAM_PATH)

export const pathOf = (request: IncomingMessage): string => request.url?.split('?', 1)[0] ?? ''

export const isWildcard = (host: string): boolean => host === '0.0.0.0' || /^[0:]*::[0:]*$/.test(host)

/** A wildcard is no address to connect to: this machine's own stands for it. */
function authority(host: string, port: number): string {
  if (host.includes(':')) return `[${isWildcard(host) ? '::1' : host}]:${port}`
  return `${isWildcard(host) ? '127.0.0.1' : host}:${port}`
}

function answerStarting(request: IncomingMessage, response: ServerResponse): void {
  const alive = pathOf(request) === '/healthz'
  const body = alive
    ? { ok: true }
    : { error: 'control_plane_unavailable', message: 'The coordinator is starting.' }
  response
    .writeHead(alive ? 200 : 503, { 'content-type': 'application/json; charset=utf-8', 'retry-after': '1' })
    .end(JSON.stringify(body))
}

const WHY: Record<string, string> = {
  EADDRINUSE: 'another program listens there already. Stop it, or choose another address in BOXWOOD_LISTEN.',
  EADDRNOTAVAIL: 'this machine does not have that address. Choose another in BOXWOOD_LISTEN.',
  ENOTFOUND: 'that name is unknown. Choose another in BOXWOOD_LISTEN.',
  EACCES: 'this user may not take that port. Choose one from 1024 on in BOXWOOD_LISTEN.',
}

const cannotListen = (error: NodeJS.ErrnoException, { host, port }: Address) =>
  new StartError(
    `The coordinator cannot listen on ${host}:${port}: ${WHY[error.code ?? ''] ?? error.message}`,
    { cause: error },
  )
