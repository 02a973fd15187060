// GET /metrics in the text format of Prometheus: on a listener of its own, and with a token on the main one.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { ApiError } from '../../../../shared/errors.ts'
import { getRequestPath, type Listening } from '../../../http/listen.ts'
import type { PublicRoute } from '../../../http/public-routes.ts'

const METRICS_PATH = '/metrics'

/** Returns a function that compares an Authorization header with the token in constant time. */
function createTokenCheck(token: string): (authorization: string | undefined) => boolean {
  // Digests have the same length.
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const expected = digest(token)
  return (authorization = '') => {
    const [, presented = ''] = /^Bearer +(\S+)$/i.exec(authorization) ?? []
    return timingSafeEqual(digest(presented), expected)
  }
}

const WRONG_TOKEN = 'Send the token of BOXWOOD_METRICS_TOKEN in the header Authorization: Bearer.'

/** The route of the main listener. Works also while the coordinator drains. */
export function createMetricsRoute(registry: Registry, token: string): PublicRoute {
  const isAuthorized = createTokenCheck(token)
  return {
    path: METRICS_PATH,
    isHealthCheck: true,
    async handler(request, reply) {
      if (!isAuthorized(request.headers.authorization)) throw new ApiError('unauthorized', WRONG_TOKEN)
      return reply.type(registry.contentType).send(await registry.metrics())
    },
  }
}

/** Serves the metrics on a listener of their own. `token` null: without authentication. */
export function serveMetrics(
  { setRequestListener }: Listening,
  { registry, token, log }: { registry: Registry; token: string | null; log: Pick<Logger, 'error'> },
): void {
  const isAuthorized = token === null ? () => true : createTokenCheck(token)

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sendText = (status: number, text: string, headers: Record<string, string> = {}) =>
      response
        .writeHead(status, {
          'content-type': 'text/plain; charset=utf-8',
          'content-length': Buffer.byteLength(text),
          ...headers,
        })
        .end(request.method === 'HEAD' ? undefined : text)
    if (getRequestPath(request) !== METRICS_PATH) return void sendText(404, 'The metrics are at /metrics.\n')
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return void sendText(405, 'Use GET.\n', { allow: 'GET, HEAD' })
    if (!isAuthorized(request.headers.authorization))
      return void sendText(401, `${WRONG_TOKEN}\n`, { 'www-authenticate': 'Bearer' })
    sendText(200, await registry.metrics(), { 'content-type': registry.contentType })
  }

  setRequestListener((request, response) => {
    // No response to a request with a body needs the body.
    request.resume()
    respond(request, response).catch((err: unknown) => {
      log.error({ err }, 'failed to send the metrics')
      response.destroy()
    })
  })
}
