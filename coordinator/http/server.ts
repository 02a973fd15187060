// The HTTP server of the coordinator's only port. Fastify serves the control plane, the edge, health checks, the OpenAPI
// document and the pages; the agents' connections and the requests to other host names bypass it.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import {
  ENROLL_PATH,
  SECRET_PATH_PREFIX,
  SOCKET_PATH_PREFIX,
  STREAM_PATH_PREFIX,
  TRANSFER_PATH_PREFIX,
  TUNNEL_PATH,
} from '../../shared/protocol.ts'
import { createLineLimiter } from '../base/log/line-limiter.ts'
import { PEER_PATH, type Peers } from '../replicas/peers.ts'
import type { Connections } from './connections.ts'
import type { Dashboard } from './dashboard/files.ts'
import { sendLargeHeaders } from './errors.ts'
import { createFastifyApp } from './fastify-app.ts'
import { createContentHandler } from './fixed-content.ts'
import { readForwarded } from './forwarded-requests.ts'
import { type Health, healthRoutes } from './health.ts'
import type { HostHandler } from './host-handler.ts'
import { hasLargeHeaders } from './large-requests.ts'
import { closeAfterEarlyResponse, type LingerLimits } from './lingering-close.ts'
import { getRequestPath, type Listening } from './listen.ts'
import { createMethodLookup } from './method-lookup.ts'
import type { RequestObserver } from './observe-requests.ts'
import { type ApiTables, createOpenApiDocument } from './openapi.ts'
import { pageRoutes, registerFileSender } from './pages/routes.ts'
import { CONTROL_PREFIX, EDGE_BASE, EDGE_PREFIX } from './prefixes.ts'
import { type PublicRoute, registerPublicRoutes } from './public-routes.ts'
import { createBareErrorsLookup, type HttpContext, registerRoutes } from './register-routes.ts'
import { getHost } from './request-host.ts'
import type { Route } from './route.ts'
import { isWebSocketUpgrade, serveUpgrade } from './websocket.ts'

export type AgentConnectionHandlers = {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  handleTransfer(request: IncomingMessage, response: ServerResponse): void
}

export type HttpServerOptions = {
  listening: Listening
  log: Logger
  context: HttpContext
  control: readonly Route[]
  edge: readonly Route[]
  agents: AgentConnectionHandlers
  /** Requests under ENROLL_PATH, which are not part of the API. Default: none. */
  agentRoutes?: readonly Route[]
  health: Health
  /** Further routes without an API key, such as the metrics. */
  publicRoutes?: readonly PublicRoute[]
  /** Default: null, without the dashboard. */
  dashboard?: Dashboard | null
  /** Serve the requests with other host names. Default: none. */
  hostHandlers?: readonly HostHandler[]
  /** Observes all requests. Default: none. */
  observer?: RequestObserver | undefined
  /** The origin at which clients reach this server. */
  publicUrl: string
  /** IP addresses and ranges of the proxies whose X-Forwarded-For has the address of the client. Default: none. */
  trustedProxies?: readonly string[]
  /** Default: HTTP_LIMITS.linger. */
  linger?: LingerLimits
  /** Set when other coordinators use the database. */
  peers?: Pick<Peers, 'verify' | 'serve'> | undefined
  /** While it returns false, requests except health checks get 503. Default: always true. */
  isServing?: (() => boolean) | undefined
}

export type HttpServer = {
  /** Number of requests being served, including the agents' transfers. */
  getInFlightCount(): number
  /** Each further response closes its connection: the next request of the client goes to another coordinator. */
  beginLeaving(): void
  /** Accepts no further connections. Requests on open connections are served. */
  stopListening(): void
  /** New requests except health checks get 503 with `Connection: close` from now on. */
  rejectNewRequests(): void
  /** Closes every open connection. */
  close(): Promise<void>
}

export const isAgentWebSocketPath = (path: string) =>
  path === TUNNEL_PATH ||
  [STREAM_PATH_PREFIX, SOCKET_PATH_PREFIX, SECRET_PATH_PREFIX].some((prefix) => path.startsWith(prefix))

/** The paths of shared ports are those of the apps on the boxes. */
const SHARE_ROUTE = '/*'
const TRANSFER_ROUTE = `${TRANSFER_PATH_PREFIX}:id`

/** Serves requests on a socket that is already listening. */
export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { listening, log, context, edge, agents, linger, hostHandlers = [], peers } = options
  let inFlight = 0
  let isRejecting = false
  let isLeaving = false
  const { app, listener, serve } = await createFastifyApp({
    listening,
    log,
    context,
    findBareErrors: createBareErrorsLookup(edge, EDGE_PREFIX + EDGE_BASE),
    observer: options.observer,
    trustedProxies: options.trustedProxies ?? [],
    isRejecting: () => isRejecting || options.isServing?.() === false,
  })
  await registerAllRoutes(app, options)
  await app.ready()
  logReachedLimits(listening.connections, log, context.clock)

  const countInFlight = (response: ServerResponse) => {
    inFlight += 1
    response.once('close', () => {
      inFlight -= 1
    })
  }
  const serveWithApp: RequestListener = (request, response) => {
    countInFlight(response)
    serve({ request, response, host: getHost(request.url ?? '') ?? 'public' }, listener)
  }
  const serveTransfer: RequestListener = (request, response) => {
    countInFlight(response)
    serve({ request, response, host: 'agents', route: TRANSFER_ROUTE }, agents.handleTransfer)
  }
  const findHostHandler = ({ headers }: IncomingMessage) =>
    hostHandlers.find((handler) => handler.accepts(headers.host))
  const serveHost = ({ listener }: HostHandler): RequestListener => {
    return (request, response) => {
      countInFlight(response)
      serve({ request, response, host: 'shares', route: SHARE_ROUTE }, listener)
    }
  }
  const recognizePeer = (request: IncomingMessage) => {
    if (peers !== undefined && readForwarded(request, peers.verify))
      listening.connections.setPeer(request.socket)
  }
  listening.setRequestListener((request, response) => {
    // A request that the client sent after the body of a request with an early response.
    if (request.socket.writableEnded) return
    if (isLeaving) response.shouldKeepAlive = false
    recognizePeer(request)
    if (peers !== undefined && request.url === PEER_PATH) return peers.serve(request, response)
    closeAfterEarlyResponse(request, response, linger)
    const hostHandler = findHostHandler(request)
    if (hasLargeHeaders(request)) sendLargeHeaders(response)
    else if (hostHandler) serveHost(hostHandler)(request, response)
    else if (request.url?.startsWith(TRANSFER_PATH_PREFIX)) serveTransfer(request, response)
    else serveWithApp(request, response)
  })
  const acceptsUpgrade = createUpgradeFilter(options)
  const filterUpgrade = (request: IncomingMessage) =>
    findHostHandler(request)?.acceptsUpgrade(request) ?? acceptsUpgrade(request)
  listening.setContinueFilter((request) => findHostHandler(request) === undefined)
  listening.setUpgradeListener(filterUpgrade, (request, socket, head) => {
    recognizePeer(request)
    const hostHandler = findHostHandler(request)
    if (hasLargeHeaders(request))
      serveUpgrade(request, socket, head, (_request, response) => sendLargeHeaders(response))
    else if (hostHandler) serveUpgrade(request, socket, head, serveHost(hostHandler))
    else if (isAgentWebSocketPath(getRequestPath(request))) agents.handleUpgrade(request, socket, head)
    else serveUpgrade(request, socket, head, serveWithApp)
  })

  return {
    getInFlightCount: () => inFlight,
    beginLeaving: () => {
      isLeaving = true
    },
    stopListening: () => void listening.server.close(),
    rejectNewRequests: () => {
      isRejecting = true
    },
    close: () => closeServer(app, listening),
  }
}

async function registerAllRoutes(app: FastifyInstance, options: HttpServerOptions): Promise<void> {
  const { context, control, edge, health, publicUrl, publicRoutes = [], agentRoutes = [] } = options
  const { dashboard = null } = options
  await registerFileSender(app)
  registerPublicRoutes(app, [
    ...healthRoutes(health),
    openApiRoute({ control, edge, publicUrl }),
    ...pageRoutes(publicUrl, dashboard),
    ...publicRoutes,
  ])
  registerRoutes(app, { prefix: CONTROL_PREFIX, host: 'control', routes: control, context })
  registerRoutes(app, { prefix: ENROLL_PATH, host: 'control', routes: agentRoutes, context })
  registerRoutes(app, { prefix: EDGE_PREFIX, base: EDGE_BASE, host: 'edge', routes: edge, context })
}

/** Accepts the WebSockets of agents and of the API. Other upgrade requests are served without the upgrade. */
function createUpgradeFilter({
  control,
  edge,
}: Pick<HttpServerOptions, 'control' | 'edge'>): (request: IncomingMessage) => boolean {
  const listPaths = (routes: readonly Route[], prefix: string) =>
    routes
      .filter(({ isWebSocket }) => isWebSocket)
      .map(({ method, path }) => ({ method, path: prefix + path }))
  const webSocketMethods = createMethodLookup([
    ...listPaths(control, CONTROL_PREFIX),
    ...listPaths(edge, EDGE_PREFIX + EDGE_BASE),
  ])
  return (request) => {
    const path = getRequestPath(request)
    if (isAgentWebSocketPath(path)) return true
    return isWebSocketUpgrade(request) && webSocketMethods(path).includes(request.method ?? '')
  }
}

const openApiRoute = (tables: ApiTables): PublicRoute => ({
  path: '/openapi.json',
  isCompressed: true,
  handler: createContentHandler('application/json; charset=utf-8', async () =>
    JSON.stringify(createOpenApiDocument(tables)),
  ),
})

function logReachedLimits(connections: Connections, log: Logger, clock: Clock): void {
  const limitLines = createLineLimiter(clock)
  connections.on('limit', ({ limit, subject, workspaceId }) => {
    const line = limitLines(`${limit} ${workspaceId ?? subject}`)
    if (line === null) return
    const closed =
      workspaceId === undefined ? 'one without a credential' : 'one of the workspace that has the most'
    log.warn(
      { limit, address: subject, workspace: workspaceId, ...line },
      `too many connections, closed ${closed}`,
    )
  })
}

async function closeServer(app: FastifyInstance, { server, connections }: Listening): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  connections.destroyAll()
  await app.close()
  await closed
}
