// The agent's HTTP/2 app: serves the coordinator over the tunnel, and curl over the unix socket. The routes of
// json-routes.ts serve the text messages of the tunnel too.
import {
  constants,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type FastifyInstance, fastify } from 'fastify'
import type { Logger } from 'pino'
import { TUNNEL_LIMITS } from '../shared/limits.ts'
import { toErrorResponse } from './requests/error-response.ts'
import { createJsonRouter, createNoRouteError, type JsonRouter } from './requests/json-routes.ts'
import { type StoredResponses, storedResponseRoutes } from './requests/stored-responses.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** HTTP/2 flow control: above the bandwidth-delay product of a fast link, and a bound on buffered bytes. */
const STREAM_WINDOW = MiB
const SESSION_WINDOW = 16 * MiB
const FRAME_BYTES = 256 * KiB

export type AgentAppOptions = {
  log: Logger
  /** Each function registers its routes in its own Fastify scope. */
  routes: readonly ((scope: FastifyInstance) => void | Promise<void>)[]
}

export type AgentApp = FastifyInstance & {
  readonly jsonRouter: JsonRouter
  readonly storedResponses: StoredResponses
}

/**
 * To serve the app, pass it to the tunnel after `app.ready()`, or call `app.listen({ path })`. Error responses use the
 * edge's envelope.
 */
export function buildAgentApp({ log, routes }: AgentAppOptions): AgentApp {
  const sessions = new Set<ServerHttp2Session>()
  const app = fastify({
    http2: true,
    logger: false,
    bodyLimit: TUNNEL_LIMITS.requestBytes,
    // The coordinator sets a deadline for each request.
    requestTimeout: 0,
    // validate-request.ts validates with zod. Without these, Fastify loads ajv and fast-json-stringify at the start.
    schemaController: {
      compilersFactory: { buildValidator: rejectRouteSchema, buildSerializer: rejectRouteSchema },
    },
    serverFactory: (handler) => createHttp2Server(handler, sessions, log),
  }) as unknown as FastifyInstance
  app.addHook('preClose', (done) => {
    for (const session of sessions) session.destroy()
    done()
  })
  app.setErrorHandler((error, request, reply) => {
    const { status, headers, body } = toErrorResponse(error, request.routeOptions.url, log)
    return reply.status(status).headers(headers).send(body)
  })
  app.setNotFoundHandler(() => {
    throw createNoRouteError()
  })
  app.decorate('jsonRouter', createJsonRouter())
  app.decorate('storedResponses', storedResponseRoutes(app))
  for (const registerRoutes of routes) app.register(async (scope) => registerRoutes(scope))
  return app as AgentApp
}

function rejectRouteSchema(): never {
  throw new Error('A route of the agent has a JSON schema. Validate its requests with validate-request.ts.')
}

function createHttp2Server(
  handler: Parameters<typeof createServer>[1],
  sessions: Set<ServerHttp2Session>,
  log: Logger,
): Http2Server {
  const server = createServer(
    {
      maxSessionMemory: 64,
      // A client that disconnects resets its stream. By default Node treats a burst of 1000 resets, or more than 33 per
      // second, as an attack and closes the session. Here the peer is the coordinator, which rate-limits its clients.
      streamResetBurst: 100_000,
      streamResetRate: 10_000,
      settings: {
        initialWindowSize: STREAM_WINDOW,
        maxFrameSize: FRAME_BYTES,
        maxConcurrentStreams: TUNNEL_LIMITS.streams,
      },
    },
    handler,
  )
  server.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    session.setLocalWindowSize(SESSION_WINDOW)
  })
  server.prependListener('stream', resetOnDestroy)
  server.on('sessionError', (error) => log.debug({ err: error }, 'HTTP/2 session failed'))
  return server
}

/**
 * Node resets a destroyed HTTP/2 stream with NO_ERROR, which the peer treats as a normal end. A response that fails midway
 * (Fastify destroys it when its source errors) would look complete, so it is reset with INTERNAL_ERROR.
 */
function resetOnDestroy(stream: ServerHttp2Stream): void {
  const destroy = stream.destroy
  stream.destroy = (error) => {
    if (!stream.closed && !stream.writableFinished) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    return destroy.call(stream, error)
  }
}
