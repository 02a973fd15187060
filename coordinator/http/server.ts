// The HTTP server of the coordinator's only port. Fastify serves the control plane, the edge, health checks, the OpenAPI
// document and the pages; the agents' connections bypass it.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import compress from '@fastify/compress'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import {
  ENROLL_PATH,
  SOCKET_PATH_PREFIX,
  STREAM_PATH_PREFIX,
  TRANSFER_PATH_PREFIX,
  TUNNEL_PATH,
} from '../../shared/protocol.ts'
import { getGeneralCode, type Host, respondToClientError, sendError } from './errors.ts'
import { type Health, healthRoutes } from './health.ts'
import { closeAfterEarlyResponse, isEarlyResponse, type LingerLimits } from './lingering-close.ts'
import { getRequestPath, type Listening } from './listen.ts'
import { createMethodLookup } from './method-lookup.ts'
import { createRequestObservation, type RequestObserver } from './observe-requests.ts'
import { type ApiTables, createOpenApiDocument } from './openapi.ts'
import { pageRoutes, registerFileSender } from './pages/routes.ts'
import { CONTROL_PREFIX, EDGE_BASE, EDGE_PREFIX } from './prefixes.ts'
import { type PublicRoute, registerPublicRoutes } from './public-routes.ts'
import {
  authenticateRequest,
  COMPRESSION,
  type HttpContext,
  registerRoutes,
  UNKNOWN_ROUTE,
} from './register-routes.ts'
import type { Route } from './route.ts'
import { createEncodingError } from './url-encoding.ts'
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
  /** Observes all requests. Default: none. */
  observer?: RequestObserver | undefined
  /** The origin at which clients reach this server. */
  publicUrl: string
  /** IP addresses and ranges of the proxies whose X-Forwarded-For has the address of the client. Default: none. */
  trustedProxies?: readonly string[]
  /** Default: HTTP_LIMITS.linger. */
  linger?: LingerLimits
}

export type HttpServer = {
  /** Number of requests being served, including the agents' transfers. */
  getInFlightCount(): number
  /** New requests except health checks get 503 with `Connection: close` from now on. */
  rejectNewRequests(): void
  /** Closes every open connection. */
  close(): Promise<void>
}

export const isAgentWebSocketPath = (path: string) =>
  path === TUNNEL_PATH || path.startsWith(STREAM_PATH_PREFIX) || path.startsWith(SOCKET_PATH_PREFIX)

const TRANSFER_ROUTE = `${TRANSFER_PATH_PREFIX}:id`

const DROP_LOG_INTERVAL_MS = 60_000

/** Serves requests on a socket that is already listening. */
export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const {
    listening,
    log,
    context,
    control,
    edge,
    agents,
    health,
    publicUrl,
    linger,
    trustedProxies = [],
  } = options
  let inFlight = 0
  let isRejecting = false
  let fastifyListener: RequestListener = () => undefined
  const { server } = listening

  const app: FastifyInstance = Fastify({
    serverFactory: (listener) => {
      fastifyListener = listener
      return server
    },
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: false,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    routerOptions: { maxParamLength: 512 },
    clientErrorHandler: (error, socket) => respondToClientError(error, socket as Socket),
    frameworkErrors: (error, request, reply) => {
      // As for any other path, the key is checked first. On the control plane a malformed id is not found (spec §4.1.3).
      const host = getHost(request.url)
      const authenticated = host === null ? Promise.resolve() : authenticateRequest(request, host, context)
      authenticated
        .then(() => {
          if (host === 'edge' && error.code === 'FST_ERR_BAD_URL') throw createEncodingError(host, 'path')
          throw new ApiError('not_found', UNKNOWN_ROUTE)
        })
        .catch((error: unknown) => sendError(error, request, reply, host ?? 'control'))
    },
  })
  app.decorateRequest('actor', null)
  app.decorateRequest('openRequest', null)
  const serve = createRequestObservation(app, options.observer)
  app.setErrorHandler((error, request, reply) => void sendError(error, request, reply, 'control'))
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found', UNKNOWN_ROUTE)
  })
  app.addHook('onRequest', async ({ raw, url }) => {
    if (countHostHeaders(raw) > 1)
      throw new ApiError(
        getGeneralCode(getHost(url) ?? 'control'),
        'The request has several Host headers. Check the client and any proxy in front of the coordinator.',
      )
  })
  app.addHook('onRequest', async (request, reply) => {
    if (!isRejecting || request.routeOptions.config.health) return
    reply.header('connection', 'close')
    sendError(
      new ApiError('control_plane_unavailable', 'The coordinator is stopping. Try again.', {
        headers: { 'retry-after': '1' },
      }),
      request,
      reply,
      getHost(request.url) ?? 'control',
    )
    return reply
  })
  app.addHook('onSend', async (request, reply) => {
    if (await isEarlyResponse(request.raw)) reply.header('connection', 'close')
  })
  await app.register(compress, { ...COMPRESSION, globalDecompression: false })
  await registerFileSender(app)
  registerPublicRoutes(app, [
    ...healthRoutes(health),
    openApiRoute({ control, edge, publicUrl }),
    ...pageRoutes(publicUrl),
    ...(options.publicRoutes ?? []),
  ])
  registerRoutes(app, { prefix: CONTROL_PREFIX, host: 'control', routes: control, context })
  const { agentRoutes = [] } = options
  registerRoutes(app, { prefix: ENROLL_PATH, host: 'control', routes: agentRoutes, context })
  registerRoutes(app, { prefix: EDGE_PREFIX, base: EDGE_BASE, host: 'edge', routes: edge, context })
  await app.ready()
  server.on('drop', createDropLogger(log, server))
  const countInFlight = (response: ServerResponse) => {
    inFlight += 1
    response.once('close', () => {
      inFlight -= 1
    })
  }
  listening.setRequestListener((request, response) => {
    // A request that the client sent after the body of a request with an early response.
    if (request.socket.writableEnded) return
    closeAfterEarlyResponse(request, response, linger)
    countInFlight(response)
    if (request.url?.startsWith(TRANSFER_PATH_PREFIX))
      serve({ request, response, host: 'agents', route: TRANSFER_ROUTE }, agents.handleTransfer)
    else serve({ request, response, host: getHost(request.url ?? '') ?? 'public' }, fastifyListener)
  })
  const webSocketMethods = createMethodLookup(
    edge
      .filter(({ isWebSocket }) => isWebSocket)
      .map(({ method, path }) => ({ method, path: EDGE_PREFIX + EDGE_BASE + path })),
  )
  listening.setUpgradeListener(
    (request) => {
      const path = getRequestPath(request)
      if (isAgentWebSocketPath(path)) return true
      return isWebSocketUpgrade(request) && webSocketMethods(path).includes(request.method ?? '')
    },
    (request, socket, head) => {
      if (isAgentWebSocketPath(getRequestPath(request))) return agents.handleUpgrade(request, socket, head)
      serveUpgrade(request, socket, head, (request, response) => {
        countInFlight(response)
        serve({ request, response, host: getHost(request.url ?? '') ?? 'public' }, fastifyListener)
      })
    },
  )

  return {
    getInFlightCount: () => inFlight,
    rejectNewRequests: () => {
      isRejecting = true
    },
    close: () => closeServer(app, listening),
  }
}

function openApiRoute(tables: ApiTables): PublicRoute {
  let json: string | undefined
  return {
    path: '/openapi.json',
    async handler(_request, reply) {
      json ??= JSON.stringify(createOpenApiDocument(tables))
      return reply.type('application/json; charset=utf-8').send(json)
    },
  }
}

/** Node's `headers` has only the first one. */
const countHostHeaders = ({ rawHeaders }: IncomingMessage): number =>
  rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length

function getHost(url: string): Host | null {
  const isUnder = (prefix: string) => /^(?:$|[/?])/.test(url.slice(prefix.length)) && url.startsWith(prefix)
  if (isUnder(CONTROL_PREFIX)) return 'control'
  return isUnder(EDGE_PREFIX) ? 'edge' : null
}

/** Logs rejected connections at most once a minute. */
function createDropLogger(log: Logger, server: Server): () => void {
  let loggedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - loggedAt < DROP_LOG_INTERVAL_MS) return
    loggedAt = performance.now()
    log.warn({ maxConnections: server.maxConnections }, 'too many connections, closing new ones')
  }
}

async function closeServer(app: FastifyInstance, { server, destroyConnections }: Listening): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  destroyConnections()
  await app.close()
  await closed
}
