// The headers of a response of the box as the viewer gets them.
import { removeHopByHop } from '../../../http/forward/hop-by-hop.ts'
import { type HeaderPair, isNamed } from '../../../http/forward/raw-headers.ts'
import { filterSetCookie } from './set-cookie.ts'

export type ForwardedResponse = {
  headers: readonly HeaderPair[]
  status: number
  /** Whether the response to the viewer has the chunked encoding. Otherwise it has no trailers. */
  isChunked: boolean
  /** The viewer needs a cookie: no shared cache may store the response. */
  isPrivate: boolean
  origin: string
  port: number
  rewritesHost: boolean
}

const UPGRADE_REQUIRED = 426

export function createResponseHeaders(response: ForwardedResponse): HeaderPair[] {
  const { headers, status, isChunked, isPrivate } = response
  const forwarded = removeHopByHop(headers)
    .filter((header) => isChunked || !isNamed(header, 'trailer'))
    .flatMap((header) => replaceHeader(header, response))
  const upgrades = headers.filter((header) => status === UPGRADE_REQUIRED && isNamed(header, 'upgrade'))
  return [...(isPrivate ? makePrivate(forwarded) : forwarded), ...upgrades]
}

function replaceHeader(
  [name, value]: HeaderPair,
  {
    origin,
    port,
    rewritesHost,
    isPrivate,
  }: Pick<ForwardedResponse, 'origin' | 'port' | 'rewritesHost' | 'isPrivate'>,
): HeaderPair[] {
  const replaced = () => {
    switch (name.toLowerCase()) {
      case 'set-cookie':
        return filterSetCookie(value)
      case 'clear-site-data':
        return filterClearSiteData(value)
      case 'alt-svc':
        // The browser would connect to another port than that of the coordinator, also after the link has ended.
        return null
      case 'service-worker-allowed':
        // See isRootServiceWorker().
        return isPrivate ? null : value
      case 'location':
        return rewritesHost ? replaceLocation(value, origin, port) : value
      default:
        return value
    }
  }
  const result = replaced()
  return result === null ? [] : [[name, result]]
}

/** `"cookies"` would clear the cookies of the whole site, which includes Boxwood and all other links. */
function filterClearSiteData(value: string): string | null {
  const types = value.split(',').map((type) => type.trim())
  if (types.includes('"*"')) return '"cache", "storage", "executionContexts"'
  return types.filter((type) => !/^"?cookies"?$/i.test(type)).join(', ') || null
}

/** An app that gets `localhost:<port>` as Host also sends it in absolute redirects. */
function replaceLocation(value: string, origin: string, port: number): string {
  const local = `http://localhost:${port}`
  return value === local || value.startsWith(`${local}/`) ? origin + value.slice(local.length) : value
}

const SHARED_CACHE_HEADERS = /^(?:surrogate-control|(?:[a-z]+-)*cdn-cache-control)$/i

function makePrivate(headers: readonly HeaderPair[]): HeaderPair[] {
  const isCacheControl = (header: HeaderPair) => isNamed(header, 'cache-control')
  const directives = headers
    .filter(isCacheControl)
    .flatMap(([, value]) => value.split(','))
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(?:public|private|s-maxage)(?:\s*=|$)/i.test(directive))
  const isStored = !directives.some((directive) => /^no-store$/i.test(directive))
  const value = [...(isStored ? ['private'] : []), ...directives].join(', ')
  const first = headers.findIndex(isCacheControl)
  const result = headers.flatMap((header, index): HeaderPair[] => {
    if (SHARED_CACHE_HEADERS.test(header[0])) return []
    if (!isCacheControl(header)) return [header]
    return index === first ? [[header[0], value]] : []
  })
  return first === -1 ? [...result, ['Cache-Control', value]] : result
}
