// The headers of a request as the real host gets them.
import { removeHopByHop } from '../../http/forward/hop-by-hop.ts'
import { type HeaderPair, isNamed } from '../../http/forward/raw-headers.ts'
import { type SubstitutedHeaders, substituteHeaders } from './substitute-headers.ts'
import type { Substitution } from './substitution.ts'

export type UpstreamRequest = {
  method: string
  headers: readonly HeaderPair[]
  /** The request has a body in the chunked encoding. */
  isChunked: boolean
  /** The request is forwarded as the upgrade to a WebSocket. */
  isUpgrade: boolean
  /** The length of the body when it has been read; undefined: the body is a stream. */
  bodyLength: number | undefined
}

/** Without a length, a request with one of these methods has an unknown length for some servers. */
const WITH_BODY = /^(?:POST|PUT|PATCH)$/
/** Values are masked in what the server sends, so it must not be compressed. */
const REMOVED = /^(?:accept-encoding|sec-websocket-extensions)$/i
/** The headers of a request whose body has been read. */
const REMOVED_WITH_BODY = /^(?:accept-encoding|sec-websocket-extensions|content-length|expect|trailer)$/i

export function createUpstreamHeaders(
  { method, headers, isUpgrade, bodyLength, ...request }: UpstreamRequest,
  substitution: Substitution,
): SubstitutedHeaders {
  const isChunked = request.isChunked && bodyLength === undefined
  const removed = bodyLength === undefined ? REMOVED : REMOVED_WITH_BODY
  const forwarded = removeHopByHop(headers)
    .filter(([name]) => !removed.test(name))
    // Node has no trailers without the chunked encoding.
    .filter((header) => isChunked || !isNamed(header, 'trailer'))
  const hasLength = headers.some((header) => isNamed(header, 'content-length'))
  const acceptsTrailers = headers.some((header) => isNamed(header, 'te') && /\btrailers\b/i.test(header[1]))
  const added: (HeaderPair | false)[] = [
    ['Accept-Encoding', 'identity'],
    acceptsTrailers && ['TE', 'trailers'],
    isChunked && ['Transfer-Encoding', 'chunked'],
    bodyLength !== undefined && ['Content-Length', String(bodyLength)],
    bodyLength === undefined && !isChunked && !hasLength && WITH_BODY.test(method) && ['Content-Length', '0'],
    isUpgrade && ['Connection', 'Upgrade'],
    isUpgrade && ['Upgrade', 'websocket'],
  ]
  const substituted = substituteHeaders(forwarded, substitution)
  return {
    ...substituted,
    headers: [...substituted.headers, ...added.filter((header) => header !== false)],
  }
}
