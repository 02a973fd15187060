// The one port: control plane, edge, health and the API's description over Fastify; the boxes' own connections past it.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import compress from '@fastify/compress'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { TRANSFER_PATH } from '../../shared/protocol.ts'
import { answerClientError, type Host, sendError } from './errors.ts'
import { type Health, mountHealth } from './health.ts'
import type { Listening } from './listen.ts'
import { admit, COMPRESSION, type HttpContext, mountRoutes } from './mount.ts'
import { describeApi } from './openapi.ts'
import { CONTROL_PREFIX, EDGE_BASE, EDGE_PREFIX } from './prefixes.ts'
import type { Route } from './route.ts'

export type BoxConnections = {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  handleTransfer(request: IncomingMessage, response: ServerResponse): void
}

export type HttpServerOptions = {
  listening: Listening
  log: Logger
  context: HttpContext
  control: readonly Route[]
  edge: readonly Route[]
  boxes: BoxConnections
  health: Health
  /** Where clients find this server: an origin. */
  publicUrl: string
}

export type HttpServer = {
  /** Requests under way, those of the boxes' transfers too. */
  inFlight(): number
  /** From here on, everything but health answers 503 and asks the client to come back on a new connection. */
  refuseNew(): void
  /** Ends every connection that is left. */
  close(): Promise<void>
}

/** Takes over what is listening. */
export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { listening, log, context, control, edge, boxes, health, publicUrl } = options
  let running = 0
  let refusing = false
  let handle: RequestListener = () => undefined
  const { server } = listening
  server.on('upgrade', (request, socket, head) => boxes.handleUpgrade(request, socket, head))

  const app: FastifyInstance = Fastify({
    serverFactory: (fastify) => {
      handle = fastify
      return server
    },
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 512 },
    clientErrorHandler: (error, socket) => answerClientError(error, socket as Socket),
    frameworkErrors: (_error, request, reply) => {
      // A path that cannot be decoded names nothing; who asks must show a key first, as for any other path.
      const host = hostOf(request.url)
      const admitted = host === null ? Promise.resolve() : admit(request, host, context)
      admitted
        .then(() => Promise.reject(new ApiError('not_found')))
        .catch((error: unknown) => sendError(error, request, reply, host ?? 'control'))
    },
  })
  app.decorateRequest('actor', null)
  app.setErrorHandler((error, request, reply) => void sendError(error, request, reply, 'control'))
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found', 'No such route.')
  })
  app.addHook('onRequest', async (request, reply) => {
    if (!refusing || request.routeOptions.config.health) return
    reply.header('connection', 'close')
    sendError(
      new ApiError('control_plane_unavailable', 'The coordinator is stopping. Try again.', {
        headers: { 'retry-after': '1' },
      }),
      request,
      reply,
      hostOf(request.url) ?? 'control',
    )
    return reply
  })
  await app.register(compress, { ...COMPRESSION, globalDecompression: false })
  mountHealth(app, health)
  mountRoutes(app, { prefix: CONTROL_PREFIX, host: 'control', routes: control, context })
  mountRoutes(app, { prefix: EDGE_PREFIX, base: EDGE_BASE, host: 'edge', routes: edge, context })
  let description: string | undefined
  app.get('/openapi.json', (_request, reply) => {
    description ??= JSON.stringify(describeApi({ control, edge, publicUrl }))
    return reply.type('application/json; charset=utf-8').send(description)
  })
  await app.ready()
  listening.handOver((request, response) => {
    running += 1
    response.once('close', () => {
      running -= 1
    })
    if (request.url?.startsWith(TRANSFER_PATH)) boxes.handleTransfer(request, response)
    else handle(request, response)
  })

  return {
    inFlight: () => running,
    refuseNew: () => {
      refusing = true
    },
    close: () => closeServer(app, server),
  }
}

function hostOf(url: string): Host | null {
  const under = (prefix: string) => /^(?:$|[/?])/.test(url.slice(prefix.length)) && url.startsWith(prefix)
  if (under(CONTROL_PREFIX)) return 'control'
  return under(EDGE_PREFIX) ? 'edge' : null
}

async function closeServer(app: FastifyInstance, server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeAllConnections()
  await app.close()
  await closed
}
