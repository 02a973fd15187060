// Executes a request of the coordinator with the handler of its route.
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { toErrorResponse } from './error-response.ts'
import { type JsonMethod, type JsonRequest, type JsonRouter, RequestResetError } from './json-routes.ts'

export type AgentRequest = {
  method: JsonMethod
  /** Path and query. */
  path: string
  headers?: JsonRequest['headers'] | undefined
  /** JSON, or empty. */
  body: Buffer
}

export type AgentResponse = { status: number; body: string | Buffer }

/** Resolves to null when the agent is stopping and has not executed the request. Never rejects. */
export async function executeRequest(
  router: JsonRouter,
  { method, path, headers = {}, body }: AgentRequest,
  controls: Pick<JsonRequest, 'signal' | 'abort' | 'afterResponse'>,
  log: Pick<Logger, 'error'>,
): Promise<AgentResponse | null> {
  try {
    const { handler, params, query } = router.find(method, path)
    const result = await handler({ params, query, headers, body: parseBody(body), ...controls })
    if (result === undefined) return { status: 204, body: '' }
    return { status: 200, body: Buffer.isBuffer(result) ? result : JSON.stringify(result) }
  } catch (error) {
    if (error instanceof RequestResetError) return null
    const [route] = path.split('?')
    const response = toErrorResponse(error, route, log)
    return { status: response.status, body: JSON.stringify(response.body) }
  }
}

/** @throws ApiError bad_request */
function parseBody(body: Buffer): unknown {
  if (body.length === 0) return undefined
  try {
    return JSON.parse(body.toString())
  } catch {
    throw new ApiError('bad_request', 'The body is not JSON.')
  }
}
