// Defines routes as data. Registration, validation, 405 responses and the OpenAPI document are derived from them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { ErrorCode } from '../../shared/errors.ts'
import type { Trx } from '../db/transaction.ts'
import { type Access, withoutCredential } from './access.ts'
import type { Actor } from './actor.ts'

/** The id of a resource in a path. */
export const idParam = z.string().meta({ param: { id: 'id' } })

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type RouteSchemas = {
  params?: z.ZodType
  query?: z.ZodType
  body?: z.ZodType
}

type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined

export type RouteInput<S extends RouteSchemas> = {
  params: Parsed<S['params']>
  query: Parsed<S['query']>
  body: Parsed<S['body']>
  actor: Actor
  request: FastifyRequest
  reply: FastifyReply
  /** Set for an idempotent request: writes through it commit together with the stored response. */
  trx?: Trx
  /** What `prepare` returned. */
  prepared?: unknown
}

export type Route<S extends RouteSchemas = RouteSchemas> = {
  /** The operationId in the OpenAPI document, such as `boxes.create`, which is also a method of the client. It is never changed. */
  id?: string
  /** GET also serves HEAD, whose body is not sent. A handler that streams its body checks `request.method`. */
  method: Method
  /** The path in Fastify's syntax, such as `/boxes/:id`, relative to the prefix and base of the registration. */
  path: string
  /** Groups routes in the API reference. Set by withTag(). */
  tag?: string
  /** Imperative, without a full stop. */
  summary: string
  /** Further sentences for the OpenAPI document. */
  description?: string
  request?: S
  /** Field → error code of a request in which the field is invalid. Default: the general code of the host. */
  fieldErrorCodes?: Readonly<Record<string, ErrorCode>>
  /** The error code of an invalid field of the body, also of an unknown one. `field` of the error names the field. */
  bodyErrorCode?: ErrorCode
  /**
   * Errors have the bare form of spec §7.2. Code → the code that the route responds with instead, where the spec names other
   * codes for this form.
   */
  bareErrors?: Readonly<Partial<Record<ErrorCode, ErrorCode>>>
  /** Maximum size of a JSON body in bytes. Default: LIMITS.jsonBodyBytes. */
  bodyLimit?: number
  /** Who may use the route (spec §5). */
  access: Access
  /** Accepts Idempotency-Key (spec §4.1.6). The handler returns the response body and writes through `trx`. */
  idempotent?: boolean
  /** The body is bytes, not JSON: the handler reads `request.raw`. */
  rawBody?: boolean
  /** A WebSocket: the success status is 101, and the handler calls acceptWebSocket. Requires GET. Does not serve HEAD. */
  isWebSocket?: boolean
  /**
   * The parameter with the name or the id of a box: of several coordinators that use the database, that with the tunnel
   * of the box serves the route. Edge routes: `box`.
   */
  atOwnerOf?: string
  /** An edge route that opens a forwarded connection, which has a rate of its own. */
  isForward?: boolean
  /** The response is a stream of server-sent events. */
  isEventStream?: boolean
  /**
   * The success status → schema of the response body; null: bytes, events or no body. Exactly one entry. Of a WebSocket: the
   * schema of its text messages.
   */
  responses: Record<number, z.ZodType | null>
  /**
   * Status → description of the other responses that are not errors, for the OpenAPI document. The handler sends them, with a
   * body of the same schema.
   */
  otherStatuses?: Readonly<Record<number, string>>
  /** Request headers that the handler reads, for the OpenAPI document. */
  requestHeaders?: z.ZodObject
  /** Headers of the responses that are not errors, for the OpenAPI document. */
  responseHeaders?: z.ZodObject
  /** Content types of a response of bytes. Default: application/octet-stream. */
  contentTypes?: readonly string[]
  /** Further content types of the success response, for the OpenAPI document. The handler sends these bytes itself. */
  otherContentTypes?: readonly string[]
  /** Further error codes of the handler, for the OpenAPI document. */
  errors?: readonly ErrorCode[]
  /** What a code means on this route, for the OpenAPI document. Default: the default message of the code. */
  errorDescriptions?: Partial<Record<ErrorCode, string>>
  /** Runs before the handler and outside its transaction, for slow reads. */
  prepare?(input: RouteInput<S>): Promise<unknown>
  /** The result is sent with the success status. A handler that sends the response itself returns `reply`. */
  handler(input: RouteInput<S>): Promise<unknown>
}

/** Infers the types of the handler's input from the route's schemas. */
export function route<const S extends RouteSchemas>(definition: Route<S>): Route {
  return definition as unknown as Route
}

/** A route that needs no credential. Its handler gets no actor. */
export function routeWithoutCredential<const S extends RouteSchemas>(
  definition: Omit<Route<S>, 'access' | 'handler' | 'prepare'> & {
    handler(input: Omit<RouteInput<S>, 'actor'>): Promise<unknown>
  },
): Route {
  return { ...definition, access: withoutCredential } as unknown as Route
}

/** Sets the group of routes in the API reference. */
export const withTag = (tag: string, routes: readonly Route[]): Route[] =>
  routes.map((route) => ({ ...route, tag }))
