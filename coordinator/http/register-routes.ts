// Registers route tables with Fastify and applies the rules of spec §4.1 and §5 that hold for every route.
import { finished } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import type { Db } from '../db/open.ts'
import type { Replica } from '../replicas/replica.ts'
import { assertAccess, assertVerified, describeCredential, NO_MONITOR_TICKETS } from './access.ts'
import type { Actor } from './actor.ts'
import { authenticate, type CredentialFinders, isMonitorTicket } from './auth.ts'
import { registerBodyParsers } from './body.ts'
import { assertCliVersion } from './cli-version.ts'
import { assertSameOrigin } from './cross-origin.ts'
import { describeDenial, type RecordDenial } from './denial.ts'
import { type Host, sendError } from './errors.ts'
import { getForwarded } from './forwarded-requests.ts'
import { createIdempotentRunner, type RunIdempotent } from './idempotency.ts'
import { createMethodLookup } from './method-lookup.ts'
import type { OpenRequest, OpenRequests } from './open-requests.ts'
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
    /** Set together with `actor`, for a known route. */
    openRequest: OpenRequest | null
  }
}

export type HttpContext = {
  finders: CredentialFinders
  /** Rejects for an actor that may not act as the operator of the coordinator. */
  assertOperator(actor: Actor): Promise<void>
  db: Db
  clock: Clock
  replica: Pick<Replica, 'id' | 'isLeaseValid'>
  openRequests: OpenRequests
  denials: { record: RecordDenial }
  /** The limiter of the edge. */
  limiter: {
    /** Rejects with rate_limited. */
    countRequest(credentialId: string, isForward?: boolean): Promise<void>
  }
  /** Time limit for receiving a whole JSON body. Default: 60 s. */
  bodyTimeoutMs?: number
  /** Set when other coordinators use the database. */
  forwardToOwner?: ForwardToOwner | undefined
}

/**
 * Forwards a request about a box to the coordinator that has the tunnel of the box. Resolves to false when this one serves it.
 * Rejects with the errors of a box that cannot be found or reached.
 */
export type ForwardToOwner = (exchange: {
  host: Host
  actor: Actor
  /** The name or the id of the box. */
  box: string
  request: FastifyRequest
  reply: FastifyReply
}) => Promise<boolean>

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
  customTypes: /^(application\/(json|javascript)|text\/(html|css|csv|javascript))(;|$)/,
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

/**
 * Runs before the body is read. A request counts against the rate of its credential, also when it is rejected later.
 * @param route undefined: the path is unknown
 */
export async function authenticateRequest(
  request: FastifyRequest,
  host: Host,
  context: HttpContext,
  route?: Route,
): Promise<void> {
  const { headers } = request
  if (route?.access.credential === 'none') {
    assertSameOrigin(headers)
  } else {
    if (
      route?.access.credential === 'key' &&
      route.access.forbidsMonitorTickets &&
      isMonitorTicket(headers.authorization)
    )
      throw new ApiError('not_allowed', NO_MONITOR_TICKETS)
    const actor = await authenticate(headers, context.finders, describeCredential(route?.access))
    request.actor = actor
    assertVerified(actor.credential, route?.access ?? null)
    // Also a GET, which may be recorded, or use a link that works once.
    if (actor.credential.type === 'session') assertSameOrigin(headers)
    // The coordinator that the client is connected to has counted a forwarded request.
    if (host === 'edge' && getForwarded(request.raw) === undefined)
      await context.limiter.countRequest(actor.credential.id, route?.isForward)
  }
  if (host === 'control') assertCliVersion(headers[CLI_VERSION_HEADER])
}

/** Rejects when the actor may not use the route. */
async function authorize(
  actor: Actor,
  { access }: Route,
  host: Host,
  context: Pick<HttpContext, 'assertOperator'>,
): Promise<void> {
  if (access.credential === 'operator') await context.assertOperator(actor)
  else assertAccess(actor, access, host)
}

async function authenticateAgain(
  { headers }: FastifyRequest,
  route: Route,
  host: Host,
  context: HttpContext,
): Promise<Actor> {
  const actor = await authenticate(headers, context.finders)
  await authorize(actor, route, host, context)
  return actor
}

/**
 * Of responses to requests that a page of another origin can cause, refusals included: it must not show or use them. Shared
 * caches store responses to requests with a cookie, unlike those with Authorization.
 */
const BROWSER_RESPONSE_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** Registers the routes, and the host's 401, 404 and 405 responses under the prefix. */
export function registerRoutes(app: FastifyInstance, registration: RouteRegistration): void {
  const { prefix, base = '', host, routes, context } = registration
  for (const { method, path, access } of routes)
    if (access === undefined) throw new Error(`${method} ${path} does not declare its access`)
  const runIdempotent = createIdempotentRunner(context)
  const getMethods = createMethodLookup(
    routes.flatMap((route) =>
      toHttpMethods(route).map((method) => ({ method, path: prefix + base + route.path })),
    ),
  )
  const findBareErrors = createBareErrorsLookup(routes, prefix + base)
  /** The queries of a coordinator that has lost its lease fail. */
  const toResponse = (error: unknown) =>
    error instanceof ApiError || context.replica.isLeaseValid
      ? error
      : new ApiError('control_plane_unavailable', undefined, { cause: error })

  app.register(
    async (scope) => {
      registerBodyParsers(scope, host, context.bodyTimeoutMs)
      scope.setErrorHandler((error, request, reply) => {
        const denial = describeDenial(error, request)
        if (denial !== null) finished(reply.raw, () => context.denials.record(denial))
        sendError(
          toResponse(error),
          request,
          reply,
          host,
          request.is404 ? findBareErrors(getPath(request)) : undefined,
        )
      })
      scope.addHook('onRequest', async (request, reply) => {
        const { route } = request.routeOptions.config
        const { changeCount: changesBefore } = context.openRequests
        if (request.headers.authorization === undefined) reply.headers(BROWSER_RESPONSE_HEADERS)
        await authenticateRequest(request, host, context, route)
        if (request.is404) throw createUnknownRouteError(request, getMethods)
        assertQueryIsUtf8(request.url, host)
        const { actor } = request
        if (route && actor) await authorize(actor, route, host, context)
        if (route?.isWebSocket) assertWebSocketHandshake(request)
        if (route && actor)
          request.openRequest = context.openRequests.add({
            actor,
            changesBefore,
            authenticate: () => authenticateAgain(request, route, host, context),
            response: reply.raw,
          })
      })
      // The connection of the client has its credential, and the body has not been read.
      const { forwardToOwner } = context
      if (forwardToOwner !== undefined)
        scope.addHook('preParsing', async (request, reply) => {
          const box = getBoxParam(request, host)
          if (request.actor === null || box === undefined) return
          if (await forwardToOwner({ actor: request.actor, box, request, reply, host })) reply.hijack()
        })
      // The body may have arrived long after the check.
      scope.addHook('preHandler', async (request) => {
        if (request.openRequest !== null) request.actor = await request.openRequest.confirm()
      })
      // The hook throws before this handler. Without a handler, Fastify runs no hooks for unknown paths of the prefix.
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
          handler: createHandler(route, host, { runIdempotent, getMethods }),
        })
      }
    },
    { prefix },
  )
}

/** The box of a route that the coordinator with its tunnel serves; undefined: any coordinator serves the route. */
function getBoxParam({ params, routeOptions }: FastifyRequest, host: Host): string | undefined {
  const name = routeOptions.config.route?.atOwnerOf ?? (host === 'edge' ? 'box' : undefined)
  return name === undefined ? undefined : (params as Record<string, string>)[name]
}

export const getPath = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? ''

/** The error form of a path, for requests that the router does not assign to the route. */
export function createBareErrorsLookup(routes: readonly Route[], prefix: string) {
  const bare = routes.flatMap(({ method, path, bareErrors }) =>
    bareErrors === undefined
      ? []
      : [{ bareErrors, find: createMethodLookup([{ method, path: prefix + path }]) }],
  )
  return (path: string): Route['bareErrors'] => bare.find(({ find }) => find(path).length > 0)?.bareErrors
}

function createUnknownRouteError(request: FastifyRequest, getMethods: (path: string) => string[]): ApiError {
  const methods = getMethods(getPath(request))
  if (methods.length === 0) return new ApiError('not_found', UNKNOWN_ROUTE)
  return new ApiError('method_not_allowed', undefined, { headers: { allow: methods.join(', ') } })
}

export const UNKNOWN_ROUTE = 'This route does not exist. The API reference is at /docs.'

/** The path may be that of another route, without parameters: GET /prompts/interrupt matches /prompts/:runId. */
function createPathError(request: FastifyRequest, getMethods: (path: string) => string[]): ApiError {
  const error = createUnknownRouteError(request, getMethods)
  const isOtherRoute =
    error.code === 'method_not_allowed' && !error.headers.allow?.split(', ').includes(request.method)
  return isOtherRoute ? error : new ApiError('not_found')
}

function createHandler(
  route: Route,
  host: Host,
  { runIdempotent, getMethods }: { runIdempotent: RunIdempotent; getMethods: (path: string) => string[] },
) {
  const status = getSuccessStatus(route)
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { params, query, body, actor } = request
    if (actor === null && route.access.credential !== 'none')
      throw new Error('the request reached its route without authentication')
    const createInput = () =>
      ({
        ...validate(route, host, { params, query, body }, () => createPathError(request, getMethods)),
        actor,
        request,
        reply,
      }) as RouteInput<NonNullable<Route['request']>>
    const prepare = async () => route.prepare?.(createInput())
    const header = request.headers[IDEMPOTENCY_KEY_HEADER]
    if (route.idempotent && header !== undefined && actor !== null) {
      const routeName = `${route.method} ${route.path}`
      const prepared = await prepare().catch(() => undefined)
      const response = await runIdempotent(
        { header, route: routeName, actor, params, body, status },
        // An invalid body must not hide that the key was used for another request.
        async (trx) => route.handler({ ...createInput(), trx, prepared }),
      )
      if (response.replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(response.status).type('application/json; charset=utf-8').send(response.body)
    }
    // Awaiting a sent reply gives undefined, so a handler that returns the reply also ends here.
    const prepared = await prepare()
    const result = await route.handler({ ...createInput(), prepared })
    if (result !== undefined) return reply.code(status).send(result)
    if (status === 204 && !reply.sent) return reply.code(204).send()
    return reply
  }
}
