// Puts a table of routes on the server, with everything that the spec's §4.1 and §5 ask of each of them.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import { assertAccess } from './access.ts'
import type { Actor } from './actor.ts'
import { authenticate, type FindKey } from './auth.ts'
import { readBodies } from './body.ts'
import { assertCliVersion } from './cli-version.ts'
import { type Host, sendError } from './errors.ts'
import { createIdempotency, type Idempotently } from './idempotency.ts'
import { allowedMethods } from './methods.ts'
import type { Route, RouteInput } from './route.ts'
import { validate } from './validate.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route
    rawBody?: boolean
    bodyLimit?: number | undefined
    hasBody?: boolean
  }
  interface FastifyRequest {
    /** Set before anything of a route runs. */
    actor: Actor | null
  }
}

export type HttpContext = { findKey: FindKey; db: Db; clock: Clock }

export type Mount = {
  /** Everything under it belongs to the host, unknown paths too. */
  prefix: string
  /** Between the prefix and each route's path: `/box/:box`. */
  base?: string
  host: Host
  routes: readonly Route[]
  context: HttpContext
}

/** Header names are Node's: lower case. */
const CLI_VERSION = 'x-service-cli-version'
const IDEMPOTENCY_KEY = 'idempotency-key'

/** Spec §4.1.2: gzip over 1 KiB. */
export const COMPRESSION = {
  encodings: ['gzip' as const],
  threshold: LIMITS.gzipFromBytes + 1,
  customTypes: /^application\/json(;|$)/,
}

/** The one success status of the route. */
export function successStatus({ method, path, answers }: Route): number {
  const [status, ...more] = Object.keys(answers).map(Number)
  if (status === undefined || more.length > 0) throw new Error(`${method} ${path} needs exactly one answer.`)
  return status
}

/** Checks who is calling before any byte of the body is read. */
export async function admit(request: FastifyRequest, host: Host, context: HttpContext): Promise<void> {
  request.actor = await authenticate(request.headers.authorization, context.findKey)
  if (host === 'control') assertCliVersion(request.headers[CLI_VERSION])
}

/** Registers the routes and their host's 401, 404 and 405 under the prefix. */
export function mountRoutes(app: FastifyInstance, mount: Mount): void {
  const { prefix, base = '', host, routes, context } = mount
  const idempotently = createIdempotency(context)
  const methodsOf = allowedMethods(routes.map(({ method, path }) => ({ method, path: prefix + base + path })))

  app.register(
    async (scope) => {
      readBodies(scope, host)
      scope.setErrorHandler((error, request, reply) => void sendError(error, request, reply, host))
      scope.addHook('onRequest', async (request) => {
        await admit(request, host, context)
        if (request.is404) throw unknownRoute(request, methodsOf)
        const { route } = request.routeOptions.config
        if (route && request.actor) assertAccess(request.actor, route)
      })
      // The hook has thrown before this runs; but without a handler here, the prefix would have no 404 of its own.
      scope.setNotFoundHandler((request) => {
        throw unknownRoute(request, methodsOf)
      })
      for (const route of routes) {
        scope.route({
          method: route.method,
          url: base + route.path,
          // Bytes and streams are never compressed: the plugin's own list of types would have them be.
          ...(route.answers[successStatus(route)] === null && { compress: false as const }),
          config: {
            route,
            rawBody: route.rawBody ?? false,
            bodyLimit: route.bodyLimit,
            hasBody: route.request?.body !== undefined,
          },
          handler: handler(route, host, idempotently),
        })
      }
    },
    { prefix },
  )
}

function unknownRoute(request: FastifyRequest, methodsOf: (path: string) => string[]): ApiError {
  const path = request.url.split('?', 1)[0] ?? ''
  const methods = methodsOf(path)
  if (methods.length === 0) return new ApiError('not_found', 'No such route.')
  return new ApiError('method_not_allowed', undefined, { headers: { allow: methods.join(', ') } })
}

function handler(route: Route, host: Host, idempotently: Idempotently) {
  const status = successStatus(route)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { params, query, body, actor } = request
    if (actor === null) throw new Error('A route was reached by nobody.')
    const checked = validate(route, host, { params, query, body })
    const input = { ...checked, actor, request, reply } as RouteInput<NonNullable<Route['request']>>
    const header = request.headers[IDEMPOTENCY_KEY]
    if (route.idempotent && header !== undefined) {
      const name = `${route.method} ${route.path}`
      const answer = await idempotently({ header, route: name, actor, params, body, status }, async (trx) =>
        route.handle({ ...input, trx }),
      )
      if (answer.replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(answer.status).type('application/json; charset=utf-8').send(answer.body)
    }
    // A handler that returns the reply has used it: awaiting a reply gives undefined once it has ended.
    const result = await route.handle(input)
    if (result !== undefined) return reply.code(status).send(result)
    if (status === 204 && !reply.sent) return reply.code(204).send()
    return reply
  }
}
