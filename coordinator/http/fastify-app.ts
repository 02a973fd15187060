// The Fastify instance without its routes: error responses, the checks of every request, and compression.
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import compress from '@fastify/compress'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { toSubject } from './actor.ts'
import { getGeneralCode, respondToClientError, sendError } from './errors.ts'
import { isBodyPending } from './lingering-close.ts'
import type { Listening } from './listen.ts'
import { createRequestObservation, type RequestObserver, type Serve } from './observe-requests.ts'
import {
  authenticateRequest,
  COMPRESSION,
  getPath,
  type HttpContext,
  UNKNOWN_ROUTE,
} from './register-routes.ts'
import { getHost } from './request-host.ts'
import type { Route } from './route.ts'
import { createEncodingError } from './url-encoding.ts'

const UNAUTHORIZED = 401

export type FastifyAppOptions = {
  listening: Pick<Listening, 'server' | 'connections'>
  log: Logger
  context: HttpContext
  /** The error form of the path of a URL. */
  findBareErrors(path: string): Route['bareErrors']
  observer: RequestObserver | undefined
  trustedProxies: readonly string[]
  /** Whether requests except health checks get 503. */
  isRejecting(): boolean
}

export type FastifyApp = {
  app: FastifyInstance
  /** Handles a request with the routes of the app. */
  listener: RequestListener
  /** Passes a request to a listener, and to the observer. */
  serve: Serve
}

export async function createFastifyApp(options: FastifyAppOptions): Promise<FastifyApp> {
  const { listening, log, context, findBareErrors, observer, trustedProxies, isRejecting } = options
  let listener: RequestListener = () => undefined
  const app: FastifyInstance = Fastify({
    serverFactory: (fastifyListener) => {
      listener = fastifyListener
      return listening.server
    },
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: false,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    routerOptions: { maxParamLength: 512 },
    clientErrorHandler: (error, socket) => respondToClientError(error, socket as Socket),
    frameworkErrors: (error, request, reply) => {
      // The key is checked first, as for any other path. On the control plane a malformed id is not found (spec §4.1.3).
      const host = getHost(request.url)
      const authenticated = host === null ? Promise.resolve() : authenticateRequest(request, host, context)
      authenticated
        .then(() => {
          if (host === 'edge' && error.code === 'FST_ERR_BAD_URL') throw createEncodingError(host, 'path')
          throw new ApiError('not_found', UNKNOWN_ROUTE)
        })
        .catch((error: unknown) =>
          sendError(error, request, reply, host ?? 'control', findBareErrors(getPath(request))),
        )
    },
  })
  app.decorateRequest('actor', null)
  app.decorateRequest('openRequest', null)
  const serve = createRequestObservation(app, observer)
  app.setErrorHandler((error, request, reply) => void sendError(error, request, reply, 'control'))
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found', UNKNOWN_ROUTE)
  })
  addRequestChecks(app, isRejecting)
  // Runs after the authentication and before the body is read.
  app.addHook('preParsing', ({ actor, raw }, reply, _payload, done) => {
    if (actor === null) return done()
    try {
      listening.connections.setAuthenticated(raw.socket, toSubject(actor))
    } catch (error) {
      reply.header('connection', 'close')
      throw error
    }
    done()
  })
  app.addHook('onResponse', ({ raw }, { statusCode }, done) => {
    if (statusCode === UNAUTHORIZED) listening.connections.setUnauthenticated(raw.socket)
    done()
  })
  app.addHook('onSend', ({ raw }, reply, _payload, done) => {
    if (!isBodyPending(raw)) return done()
    // Gives the parser time to read bytes that have arrived.
    setImmediate(() => {
      if (isBodyPending(raw)) reply.header('connection', 'close')
      done()
    })
  })
  await app.register(compress, { ...COMPRESSION, globalDecompression: false })
  return { app, listener: (request, response) => listener(request, response), serve }
}

function addRequestChecks(app: FastifyInstance, isRejecting: () => boolean): void {
  app.addHook('onRequest', ({ raw, url }, _reply, done) => {
    if (countHostHeaders(raw) > 1)
      throw new ApiError(
        getGeneralCode(getHost(url) ?? 'control'),
        'The request has several Host headers. Check the client and any proxy in front of the coordinator.',
      )
    done()
  })
  app.addHook('onRequest', (request, reply, done) => {
    if (!isRejecting() || request.routeOptions.config.health) return done()
    reply.header('connection', 'close')
    sendError(
      new ApiError('control_plane_unavailable', 'The coordinator is stopping. Try again.', {
        headers: { 'retry-after': '1' },
      }),
      request,
      reply,
      getHost(request.url) ?? 'control',
    )
  })
}

/** Node's `headers` has only the first one. */
export const countHostHeaders = ({ rawHeaders }: IncomingMessage): number =>
  rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length
