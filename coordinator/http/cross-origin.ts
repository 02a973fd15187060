// Protects dashboard sessions against cross-site request forgery: browsers attach the session cookie to every request.
import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '../../shared/errors.ts'

export const CROSS_ORIGIN = 'This request came from a page of another origin. Use the API with an API key.'

/**
 * Rejects a request that a page of another origin has sent, with the headers that browsers set and pages cannot change.
 * A client that is not a browser sends neither header. SameSite alone is not sufficient: shared ports are on the same
 * site.
 * @throws ApiError not_allowed
 */
export function assertSameOrigin(headers: IncomingHttpHeaders): void {
  const site = headers['sec-fetch-site']
  if (site === 'same-origin' || site === 'none') return
  const { origin, host } = headers
  const isOwnOrigin = origin === undefined || (host !== undefined && URL.parse(origin)?.host === host)
  if (site === undefined && isOwnOrigin) return
  throw new ApiError('not_allowed', CROSS_ORIGIN)
}
