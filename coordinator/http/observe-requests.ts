// Passes each request to an observer, for metrics and traces.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Host } from './errors.ts'

export type ObservedRequest = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** agents: the transfers of agents; public: health checks and pages; shares: shared ports of boxes. */
  readonly host: Host | 'agents' | 'public' | 'shares'
  /** The pattern of the route, such as `/api/v1/boxes/:id`. undefined before the request is routed, and for an unknown path. */
  route: string | undefined
}

/** Must call `serve` once, synchronously. */
export type RequestObserver = (observed: ObservedRequest, serve: () => void) => void

export type Serve = (
  observed: Omit<ObservedRequest, 'route'> & { route?: string },
  listener: RequestListener,
) => void

/** Adds a hook to `app`, which must be the first one. Without an observer, requests are only passed to the listener. */
export function createRequestObservation(app: FastifyInstance, observer: RequestObserver | undefined): Serve {
  if (observer === undefined) return ({ request, response }, listener) => listener(request, response)
  const observedByRequest = new WeakMap<IncomingMessage, ObservedRequest>()
  app.addHook('onRequest', (request, _reply, done) => {
    const observed = observedByRequest.get(request.raw)
    if (observed && !request.is404) observed.route = request.routeOptions.url
    done()
  })
  return ({ request, response, host, route }, listener) => {
    const observed: ObservedRequest = { request, response, host, route }
    observedByRequest.set(request, observed)
    observer(observed, () => listener(request, response))
  }
}

/** nginx logs the same status for a client that disconnects before the response. */
const CLIENT_CLOSED_REQUEST = 499

/** The status of a closed response. */
export const getFinalStatus = ({ headersSent, statusCode }: ServerResponse): number =>
  headersSent || statusCode === 101 ? statusCode : CLIENT_CLOSED_REQUEST
