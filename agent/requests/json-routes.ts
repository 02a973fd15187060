// The routes of the agent. Requests and responses are JSON.
import type { IncomingHttpHeaders } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
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
  /** @param path a segment that starts with a colon is a parameter */
  add<Path extends string>(method: JsonMethod, path: Path, handler: JsonHandler<ParamNames<Path>>): void
  /**
   * Routes that a box may never use: the first request loads and adds them.
   * @param names the first segments of their paths
   */
  defer(names: readonly string[], load: () => Promise<void>): void
  /**
   * @param path path and query
   * @throws ApiError not_found for an unknown path
   */
  find(method: JsonMethod, path: string): { handler: JsonHandler } & Pick<JsonRequest, 'params' | 'query'>
}

type Route = { segments: readonly string[]; handler: JsonHandler }

export function createJsonRouter(): JsonRouter {
  /** By method and number of segments. Routes without parameters come first. */
  const routes = new Map<string, Route[]>()
  const listRoutes = (method: JsonMethod, segments: readonly string[]): Route[] => {
    const key = `${method} ${segments.length}`
    const existing = routes.get(key)
    if (existing !== undefined) return existing
    const added: Route[] = []
    routes.set(key, added)
    return added
  }
  const deferred = new Map<string, () => Promise<void>>()

  /** Loads the routes, then executes the request. */
  const createLoader =
    (method: JsonMethod, path: string, load: () => Promise<void>): JsonHandler =>
    async (request) => {
      await load()
      // The handler would wait for an event that has passed.
      if (request.signal.aborted) throw new RequestResetError()
      const { handler, params, query } = router.find(method, path)
      return handler({ ...request, params, query })
    }

  const router: JsonRouter = {
    add(method, path, handler) {
      const segments = path.split('/')
      const siblings = listRoutes(method, segments)
      const route = { segments, handler: handler as JsonHandler }
      if (path.includes('/:')) siblings.push(route)
      else siblings.unshift(route)
    },
    defer(names, load) {
      let loading: Promise<void> | null = null
      const loadOnce = () => {
        loading ??= load().then(
          () => {
            for (const name of names) deferred.delete(name)
          },
          (error: unknown) => {
            // The next request tries again.
            loading = null
            throw error
          },
        )
        return loading
      }
      for (const name of names) deferred.set(name, loadOnce)
    },
    find(method, path) {
      const queryStart = path.indexOf('?')
      const segments = (queryStart === -1 ? path : path.slice(0, queryStart)).split('/')
      const load = deferred.get(segments[1] ?? '')
      if (load !== undefined) return { handler: createLoader(method, path, load), params: {}, query: {} }
      for (const { segments: pattern, handler } of routes.get(`${method} ${segments.length}`) ?? []) {
        const params = matchSegments(pattern, segments)
        if (params === null) continue
        return { handler, params, query: queryStart === -1 ? {} : parseQuery(path.slice(queryStart + 1)) }
      }
      throw new ApiError('not_found', 'The agent has no such route.')
    },
  }
  return router
}

/** Returns the decoded parameters. null: the path does not match. */
function matchSegments(
  pattern: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | null {
  const params: Record<string, string> = {}
  for (const [index, expected] of pattern.entries()) {
    const segment = segments[index] ?? ''
    if (!expected.startsWith(':')) {
      if (segment !== expected) return null
      continue
    }
    const value = decodeSegment(segment)
    if (value === null || value === '') return null
    params[expected.slice(1)] = value
  }
  return params
}

/** null: the segment is not percent-encoded UTF-8. */
function decodeSegment(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
