// Which requests are served: those with an API key that no page of another origin has sent.
import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '../../shared/errors.ts'
import { assertSameOrigin } from '../http/cross-origin.ts'

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * A page can let a name of its own resolve to this coordinator (DNS rebinding): the host must be one of the coordinator.
 * @param urls of this coordinator
 * @returns the API key
 * @throws ApiError
 */
export function checkRequest(headers: IncomingHttpHeaders, urls: readonly string[]): string {
  assertSameOrigin(headers)
  const host = URL.parse(`http://${headers.host}`)
  const isOwn =
    host !== null &&
    (LOOPBACK.has(host.hostname) || urls.some((url) => new URL(url).hostname === host.hostname))
  if (!isOwn)
    throw new ApiError(
      'not_allowed',
      'The host name of the request is not that of the coordinator. Set BOXWOOD_PUBLIC_URL to the URL that clients use.',
    )
  const key = /^Bearer\s+(dcp_\S+)\s*$/i.exec(headers.authorization ?? '')?.[1]
  if (key === undefined)
    throw new ApiError('unauthorized', undefined, { headers: { 'www-authenticate': 'Bearer' } })
  return key
}
