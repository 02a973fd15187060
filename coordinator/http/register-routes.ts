// Registers route tables with Fastify and applies the rules of spec §4.1 and §5 that hold for every route.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import type { Db } from '../db/open.ts'
import { assertAccess } from './access.ts'
import type { Actor } from './actor.ts'
import { authenticate, type FindKey } from './auth.ts'
import { registerBodyParsers } from './body.ts'
import { assertCliVersion } from './cli-version.ts'
import { type Host, sendError } from './errors.ts'
import { createIdempotentRunner, type RunIdempotent } from './idempotency.ts'
import { createMethodLookup } from './method-lookup.ts'
import type { Route, RouteInput } from './route.ts'
import { assertQueryIsUtf8 } from './url-encoding.ts'
import { validate } from './validate.ts'
import { assertWebSocketHandshake } from './websocket.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route
    rawBody?: boolean
    bodyLimit?: number | undefined
    hasBody?: boolean
  }
  interface FastifyRequest {
    /** Set before the route's handler runs. */
    actor: Actor | null
  }
}

export type HttpContext = {
  findKey: FindKey
  db: Db
  clock: Clock
  edge: {
    limiter: {
      /** Rejects with rate_limited. */
      countRequest(keyId: string): Promise<void>
    }
  }
}

export type RouteRegistration = {
  /** Unknown paths under the prefix get the host's error envelope too. */
  prefix: string
  /** Inserted between the prefix and each route's path: `/box/:box`. */
  base?: string
  host: Host
  routes: readonly Route[]
  context: HttpContext
}

const IDEMPOTENCY_KEY_HEADER = 'idempotency-key'

/** Spec §4.1.2: gzip over 1 KiB. */
export const COMPRESSION = {
  encodings: ['gzip' as const],
  threshold: LIMITS.gzipAboveBytes + 1,
  customTypes: /^(application\/(json|javascript)|text\/(html|css|javascript))(;|$)/,
}

const toHttpMethods = ({ method, isWebSocket }: Route): string[] =>
  method === 'GET' && !isWebSocket ? ['GET', 'HEAD'] : [method]

/** Throws when the route does not have exactly one success status. */
export function getSuccessStatus({ method, path, responses }: Route): number {
  const [status, ...others] = Object.keys(responses).map(Number)
  if (status === undefined || others.length > 0)
    throw new Error(`${method} ${path} must have exactly one response`)
  return status
}

/** Runs before the body is read. A request counts against the rate of its key, also when it is rejected later. */
export async function authenticateRequest(
  request: FastifyRequest,
  host: Host,
  context: HttpContext,
): Promise<void> {
  const actor = await authenticate(request.headers.authorization, context.findKey)
  request.actor = actor
  if (host === 'edge') await context.edge.limiter.countRequest(actor.keyId)
  if (host === 'control') assertCliVersion(request.headers[CLI_VERSION_HEADER])
}

/** Also registers the host's 401, 404 and 405 responses under the prefix. */
export function registerRoutes(app: FastifyInstance, registration: RouteRegistration): void {
  const { prefix, base = '', host, routes, context } = registration
  const runIdempotent = createIdempotentRunner(context)
  const getMethods = createMethodLookup(
    routes.flatMap((route) =>
      toHttpMethods(route).map((method) => ({ method, path: prefix + base + route.path })),
    ),
  )

  app.register(
    async (scope) => {
      registerBodyParsers(scope, host)
      scope.setErrorHandler((error, request, reply) => void sendError(error, request, reply, host))
      scope.addHook('onRequest', async (request) => {
        await authenticateRequest(request, host, context)
        if (request.is404) throw createUnknownRouteError(request, getMethods)
        assertQueryIsUtf8(request.url, host)
        const { route } = request.routeOptions.config
        if (route && request.actor) assertAccess(request.actor, route)
        if (route?.isWebSocket) assertWebSocketHandshake(request)
      })
      // Never reached, since the hook throws first. Without it, Fastify runs no hooks for unknown paths of the prefix.
      scope.setNotFoundHandler((request) => {
        throw createUnknownRouteError(request, getMethods)
      })
      for (const route of routes) {
        scope.route({
          method: toHttpMethods(route),
          url: base + route.path,
          // Bytes and streams are not compressed. The plugin's default list of types would include them.
          ...(route.responses[getSuccessStatus(route)] === null && { compress: false as const }),
          config: {
            route,
            rawBody: route.rawBody ?? false,
            bodyLimit: route.bodyLimit,
            hasBody: route.request?.body !== undefined,
          },
          handler: createHandler(route, host, runIdempotent),
        })
      }
    },
    { prefix },
  )
}

function createUnknownRouteError(request: FastifyRequest, getMethods: (path: string) => string[]): ApiError {
  const path = request.url.split('?', 1)[0] ?? ''
  const methods = getMethods(path)
  if (methods.length === 0) return new ApiError('not_found', UNKNOWN_ROUTE)
  return new ApiError('method_not_allowed', undefined, { headers: { allow: methods.join(', ') } })
}

export const UNKNOWN_ROUTE = 'This route does not exist. The API reference is at /docs.'

function createHandler(route: Route, host: Host, runIdempotent: RunIdempotent) {
  const status = getSuccessStatus(route)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { params, query, body, actor } = request
    if (actor === null) throw new Error('the request reached its route without authentication')
    const createInput = () =>
      ({ ...validate(route, host, { params, query, body }), actor, request, reply }) as RouteInput<
        NonNullable<Route['request']>
      >
    const header = request.headers[IDEMPOTENCY_KEY_HEADER]
    if (route.idempotent && header !== undefined) {
      const routeName = `${route.method} ${route.path}`
      const response = await runIdempotent(
        { header, route: routeName, actor, params, body, status },
        // An invalid body must not hide that the key was used for another request.
        async (trx) => route.handler({ ...createInput(), trx }),
      )
      if (response.replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(response.status).type('application/json; charset=utf-8').send(response.body)
    }
    // Awaiting a sent reply gives undefined, so a handler that returns the reply also ends here.
    const result = await route.handler(createInput())
    if (result !== undefined) return reply.code(status).send(result)
    if (status === 204 && !reply.sent) return reply.code(204).send()
    return reply
  }
}
