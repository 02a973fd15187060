// The headers of a request as the real host gets them.
import { removeHopByHop } from '../shared-ports/headers/hop-by-hop.ts'
import { type HeaderPair, isNamed } from '../shared-ports/headers/raw-headers.ts'
import { type Substitution, substitute } from './substitute.ts'
import type { OpenedSecret } from './value-cache.ts'

export type UpstreamRequest = {
  method: string
  headers: readonly HeaderPair[]
  /** The request has a body in the chunked encoding. */
  isChunked: boolean
  /** The request is forwarded as the upgrade to a WebSocket. */
  isUpgrade: boolean
}

/** Without a length, a request with one of these methods has an unknown length for some servers. */
const WITH_BODY = /^(?:POST|PUT|PATCH)$/
/** Values are masked in what the server sends, so it must not be compressed. */
const REMOVED = /^(?:accept-encoding|sec-websocket-extensions)$/i

export function createUpstreamHeaders(
  { method, headers, isChunked, isUpgrade }: UpstreamRequest,
  secrets: readonly OpenedSecret[],
): Substitution {
  const forwarded = removeHopByHop(headers)
    .filter(([name]) => !REMOVED.test(name))
    // Node has no trailers without the chunked encoding.
    .filter((header) => isChunked || !isNamed(header, 'trailer'))
  const hasLength = headers.some((header) => isNamed(header, 'content-length'))
  const acceptsTrailers = headers.some((header) => isNamed(header, 'te') && /\btrailers\b/i.test(header[1]))
  const added: (HeaderPair | false)[] = [
    ['Accept-Encoding', 'identity'],
    acceptsTrailers && ['TE', 'trailers'],
    isChunked && ['Transfer-Encoding', 'chunked'],
    !isChunked && !hasLength && WITH_BODY.test(method) && ['Content-Length', '0'],
    isUpgrade && ['Connection', 'Upgrade'],
    isUpgrade && ['Upgrade', 'websocket'],
  ]
  const substitution = substitute(forwarded, secrets)
  return {
    ...substitution,
    headers: [...substitution.headers, ...added.filter((header) => header !== false)],
  }
}
