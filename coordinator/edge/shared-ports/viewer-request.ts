// What a request to the origin of a link is.
import type { IncomingMessage } from 'node:http'
import { countHostHeaders } from '../../http/fastify-app.ts'
import { getUpgrade } from '../../http/websocket.ts'
import type { ViewerRequest } from './types.ts'

export const createViewerRequest = (request: IncomingMessage): ViewerRequest => ({
  method: request.method ?? 'GET',
  url: request.url ?? '/',
  headers: request.headers,
  isUpgrade: getUpgrade(request) !== undefined,
})

/**
 * Whether the request can be forwarded so that the box reads the same message. Node's parser has refused requests with several
 * lengths.
 */
export function isForwardable(request: IncomingMessage): boolean {
  const encoding = request.headers['transfer-encoding']
  return (
    countHostHeaders(request) === 1 &&
    request.url?.startsWith('/') === true &&
    (encoding === undefined || /^\s*chunked\s*$/i.test(encoding))
  )
}

/** Upgrades to HTTP/2 are ignored, as clients expect of servers that do not have it. A body would not end before the upgrade. */
export const isForwardableUpgrade = ({ headers }: IncomingMessage): boolean =>
  !/^\s*h2c?\b/i.test(headers.upgrade ?? '') &&
  headers['transfer-encoding'] === undefined &&
  Number(headers['content-length'] ?? 0) === 0

/**
 * Whether a browser would use the response as a service worker whose scope may be the whole origin. Without the header
 * Service-Worker-Allowed, the scope is at most the directory of the script.
 */
export const isRootServiceWorker = ({ headers, url }: ViewerRequest): boolean =>
  headers['service-worker'] !== undefined && url.split('?', 1)[0]?.lastIndexOf('/') === 0

/** Whether the request opens the link, unlike those that a page sends. Clients that are no browsers send no Sec-Fetch headers. */
export function isOpening({ headers, isUpgrade }: ViewerRequest): boolean {
  if (isUpgrade) return false
  if (headers['sec-fetch-mode'] === 'navigate') return headers['sec-fetch-dest'] === 'document'
  return !Object.keys(headers).some((name) => name.startsWith('sec-fetch-'))
}

/** Most servers refuse more. Node's accepts 16 KiB of all headers, and nginx 8 KiB of one. */
const MAX_COOKIE_BYTES = 16 * 1024

/** Whether the program of the box would refuse the cookies, which other links may have set for this one. */
export const hasLargeCookies = ({ headers }: IncomingMessage): boolean =>
  (headers.cookie?.length ?? 0) > MAX_COOKIE_BYTES
