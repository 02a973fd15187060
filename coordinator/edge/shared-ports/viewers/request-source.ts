// Which page has sent a request to a share. Browsers set the headers, and pages cannot change them. SameSite alone is not
// sufficient: all shares are on one site.
import { acceptsHtml } from '../pages/page.ts'
import type { ViewerRequest } from '../types.ts'

type Source = Pick<ViewerRequest, 'method' | 'headers' | 'isUpgrade'>

/** Whether a browser opens the URL as a page of its own: not in a frame, and not by a script. */
export function isNavigation({ method, headers, isUpgrade }: Source): boolean {
  if (method !== 'GET' || isUpgrade) return false
  const mode = headers['sec-fetch-mode']
  if (mode !== undefined) return mode === 'navigate' && headers['sec-fetch-dest'] === 'document'
  // Browsers send the headers of fetch metadata only to https and to localhost.
  return acceptsHtml(headers)
}

/**
 * Whether a browser shows the response as a document, in a window or a frame, whose script can read the URL. Clients that are no
 * browsers ask for no HTML.
 */
export function createsDocument({ headers, isUpgrade }: Source): boolean {
  if (isUpgrade) return false
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? acceptsHtml(headers) : mode === 'navigate'
}

/**
 * Whether the cookies of Boxwood count for the request: a page of this share or the user has sent it, or another page opens
 * the share without a body. So a page of another share cannot use the access of the viewer.
 * @param origin the origin of the share
 */
export function isFromShare(request: Source, origin: string): boolean {
  const { headers } = request
  const site = headers['sec-fetch-site']
  if (site === 'same-origin' || site === 'none') return true
  return site === undefined ? isOwnOrigin(headers, origin) : isNavigation(request)
}

/** The host of the request is one of the share. It has another port than the origin when a client forwards a port. */
function isOwnOrigin({ origin: sender, host }: Source['headers'], origin: string): boolean {
  if (sender === undefined || sender === origin) return true
  return host !== undefined && URL.parse(sender)?.host === host.toLowerCase()
}
