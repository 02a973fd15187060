// What a request to the origin of a link is.
import type { IncomingMessage } from 'node:http'
import { getUpgrade } from '../../http/websocket.ts'
import type { ViewerRequest } from './types.ts'

export const createViewerRequest = (request: IncomingMessage): ViewerRequest => ({
  method: request.method ?? 'GET',
  url: request.url ?? '/',
  headers: request.headers,
  isUpgrade: getUpgrade(request) !== undefined,
})

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
