// The routes of the agent whose requests and responses are JSON. Each is registered once, and serves HTTP/2 and the text
// messages of the tunnel.
import type { IncomingHttpHeaders } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import type { FastifyInstance } from 'fastify'
import FindMyWay from 'find-my-way'
import { ApiError } from '../../shared/errors.ts'

export type JsonRequest<ParamName extends string = string> = {
  params: Readonly<Record<ParamName, string>>
  query: unknown
  headers: IncomingHttpHeaders
  /** undefined: no body. */
  body: unknown
  /** Aborts when the request is cancelled or its connection closes. May abort after the response too. */
  signal: AbortSignal
  /** Aborts the signal. */
  abort(): void
  /** Calls `work` when the response has been sent, or cannot be sent. */
  afterResponse(work: () => void): void
}

/**
 * Returns the response: a value that is sent as JSON, a Buffer that is sent as it is, or undefined for status 204.
 * Errors are thrown as ApiError.
 */
export type JsonHandler<ParamName extends string = string> = (request: JsonRequest<ParamName>) => unknown

/** The names of the parameters in a path such as /exec/:processId. */
type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

/** A response with status 200 and no body, for a request whose result follows on a dial-back connection. */
export const EMPTY_RESPONSE = Buffer.alloc(0)

export type JsonMethod = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** Thrown for a request that was not executed, because the agent is stopping. The coordinator may repeat it on the next tunnel. */
export class RequestResetError extends Error {}

export type JsonRouter = {
  add(method: JsonMethod, path: string, handler: JsonHandler): void
  /**
   * @param path path and query
   * @throws ApiError not_found for an unknown path
   */
  find(method: JsonMethod, path: string): { handler: JsonHandler } & Pick<JsonRequest, 'params' | 'query'>
}

export function createJsonRouter(): JsonRouter {
  // The router of Fastify: both ways match paths equally.
  const router = FindMyWay()
  return {
    add: (method, path, handler) => router.on(method, path, () => undefined, handler),
    find(method, path) {
      const queryStart = path.indexOf('?')
      const found = router.find(method, FindMyWay.sanitizeUrlPath(path))
      if (found === null) throw createNoRouteError()
      return {
        handler: found.store as JsonHandler,
        params: found.params as Record<string, string>,
        query: queryStart === -1 ? {} : parseQuery(path.slice(queryStart + 1)),
      }
    },
  }
}

export const createNoRouteError = () => new ApiError('not_found', 'The agent has no such route.')

/**
 * @param app the app of app.ts or a scope of it
 * @param options.bodyLimit in bytes, for HTTP/2. Default: that of the app.
 */
export function addJsonRoute<Path extends string>(
  app: FastifyInstance,
  method: JsonMethod,
  path: Path,
  handler: JsonHandler<ParamNames<Path>>,
  options: { bodyLimit?: number } = {},
): void {
  app.getDecorator<JsonRouter>('jsonRouter').add(method, path, handler)
  app.route({
    ...options,
    method,
    url: path,
    // An automatic HEAD route would do the work and discard the response.
    exposeHeadRoute: false,
    async handler(request, reply) {
      const controller = new AbortController()
      const { signal } = controller
      const abort = () => controller.abort()
      const afterResponse = (work: () => void) => void reply.raw.once('close', work)
      afterResponse(abort)
      const { query, headers, body } = request
      const params = request.params as JsonRequest['params']
      try {
        const result = await handler({ params, query, headers, body, signal, abort, afterResponse })
        return result === undefined ? reply.status(204).send() : result
      } catch (error) {
        if (error instanceof RequestResetError) return reply.hijack().raw.destroy()
        throw error
      }
    },
  })
}
