// A route as data: what it takes, what it answers and who handles it. Mounting, validation, 405 and the API
// description are all made from these tables.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { AREAS } from '../../shared/api/account.ts'
import type { ErrorCode } from '../../shared/errors.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from './actor.ts'

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
  /** Of an idempotent route: what the handler writes belongs in it, so that it commits with the remembered answer. */
  trx?: Trx
}

/** What a limited key must cover (spec §5.8). */
export type RouteAccess = { area: (typeof AREAS)[number]; level: 'read' | 'write' }

export type Route<S extends RouteSchemas = RouteSchemas> = {
  method: Method
  /** Fastify's form, relative to the host's prefix: `/boxes/:id`. */
  path: string
  summary: string
  request?: S
  /** Which code a body or query field that fails validation answers with; others get the host's general code. */
  codes?: Readonly<Record<string, ErrorCode>>
  /** The most a JSON body may hold; the host's default when absent. */
  bodyLimit?: number
  /** Absent: boxes, read for GET and write for the rest. null: any live key may. */
  access?: RouteAccess | null
  /** About the workspace as a whole: closed to keys limited to some boxes (spec §5.9). */
  workspaceWide?: boolean
  /** Accepts Idempotency-Key (spec §4.1.6). The handler returns the answer and writes through `trx`. */
  idempotent?: boolean
  /** The body is not JSON but bytes: the handler reads request.raw. */
  rawBody?: boolean
  /** The answer is a stream of server-sent events. */
  events?: boolean
  /** status → shape of the answer. */
  answers: Record<number, z.ZodType | null>
  errors?: readonly ErrorCode[]
  /** Answers with what it returns and the (single) success status, or uses the reply itself and returns it. */
  handle(input: RouteInput<S>): Promise<unknown>
}

/** Gives a route's handler the types of its own schemas. */
export function route<const S extends RouteSchemas>(definition: Route<S>): Route {
  return definition as unknown as Route
}
