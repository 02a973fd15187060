// The agent's HTTP app: what the coordinator asks over the tunnel, and curl over the unix socket.
import {
  constants,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type FastifyInstance, fastify } from 'fastify'
import type { Logger } from 'pino'
import { ApiError, type ErrorCode, edgeErrorBody } from '../shared/errors.ts'
import { TUNNEL_LIMITS } from '../shared/limits.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** Of one HTTP/2 session: above what a fast link holds in flight, and a bound on what is buffered. */
const STREAM_WINDOW = MiB
const SESSION_WINDOW = 16 * MiB
const FRAME_BYTES = 256 * KiB

export type AgentAppOptions = {
  log: Logger
  /** Each adds its own routes, to a scope of its own. */
  routes: readonly ((scope: FastifyInstance) => void | Promise<void>)[]
}

/**
 * Serve it by emitting 'connection' with a stream of bytes on `app.server` after `app.ready()`, or by
 * `app.listen({ path })`. Errors are answered in the edge's envelope.
 */
export function buildAgentApp({ log, routes }: AgentAppOptions): FastifyInstance {
  const sessions = new Set<ServerHttp2Session>()
  const app = fastify({
    http2: true,
    logger: false,
    bodyLimit: TUNNEL_LIMITS.answerBytes,
    // Requests come from the coordinator, which has its own deadline for each.
    requestTimeout: 0,
    serverFactory: (handler) => createHttp2Server(handler, sessions, log),
  }) as unknown as FastifyInstance
  app.addHook('preClose', (done) => {
    for (const session of sessions) session.destroy()
    done()
  })
  app.setErrorHandler((error, request, reply) => {
    const refusal = toApiError(error)
    if (refusal.status >= 500) log.error({ err: error, path: request.routeOptions.url }, 'request failed')
    return reply.status(refusal.status).headers(refusal.headers).send(edgeErrorBody(refusal))
  })
  app.setNotFoundHandler((_request, reply) => {
    const refusal = new ApiError('not_found', 'This agent has no such route.')
    return reply.status(refusal.status).send(edgeErrorBody(refusal))
  })
  for (const add of routes) app.register(async (scope) => add(scope))
  return app
}

function createHttp2Server(
  handler: Parameters<typeof createServer>[1],
  sessions: Set<ServerHttp2Session>,
  log: Logger,
): Http2Server {
  const server = createServer(
    {
      maxSessionMemory: 64,
      // A client that leaves resets its stream. Node takes a thousand of them, and then 33 a second, for an attack and
      // ends the session; but the peer is the coordinator, which bounds what its clients may ask.
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
  server.prependListener('stream', resetWhenCut)
  server.on('sessionError', (error) => log.debug({ err: error }, 'session ended'))
  return server
}

/**
 * Destroying an HTTP/2 stream resets it with NO_ERROR, which the other side takes for its regular end: an answer
 * that breaks off (Fastify destroys it when its source fails) would look complete.
 */
function resetWhenCut(stream: ServerHttp2Stream): void {
  const destroy = stream.destroy
  stream.destroy = (error) => {
    if (!stream.closed && !stream.writableFinished) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    return destroy.call(stream, error)
  }
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const { statusCode, message } = error as { statusCode?: number; message?: string }
  const code = statusCode === undefined ? undefined : CLIENT_ERRORS[statusCode]
  return code
    ? new ApiError(code, message, { cause: error })
    : new ApiError('internal_error', undefined, { cause: error })
}

/** What Fastify itself refuses, by status. */
const CLIENT_ERRORS: Readonly<Record<number, ErrorCode>> = {
  400: 'bad_request',
  413: 'payload_too_large',
  415: 'bad_request',
}
