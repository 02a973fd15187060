// The headers of a request as the box gets them.
import { removeHopByHop } from '../../../http/forward/hop-by-hop.ts'
import { type HeaderPair, isNamed } from '../../../http/forward/raw-headers.ts'

export type ForwardedRequest = {
  headers: readonly HeaderPair[]
  method: string
  /** The request has a body in the chunked encoding. */
  isChunked: boolean
  /** The value of the header Upgrade, when the request is forwarded as an upgrade. */
  upgrade: string | undefined
  /** The Cookie header without the cookies of Boxwood. undefined: no cookies. */
  cookie: string | undefined
  /** The origin of the link. */
  origin: string
  port: number
  /** Whether the box gets `localhost:<port>` as Host and Origin. */
  rewritesHost: boolean
  /** null: unknown. */
  clientAddress: string | null
}

/** The client may have sent any value in these headers. For some servers, _ in a name is the same as -. */
const UNTRUSTED = /^(?:forwarded|x[-_]forwarded[-_].*|x[-_]real[-_]ip)$/i
/** The credentials of Boxwood in the header Authorization. */
const BOXWOOD_CREDENTIAL = /^\s*bearer\s+dc[a-z]_/i
/** Without a length, a request with one of these methods has an unknown length for some servers. */
const WITH_BODY = /^(?:POST|PUT|PATCH)$/

export function createRequestHeaders(request: ForwardedRequest): HeaderPair[] {
  const { headers, method, isChunked, upgrade, cookie, origin, clientAddress } = request
  const forwarded = removeHopByHop(headers)
    .filter((header) => !UNTRUSTED.test(header[0]))
    .filter((header) => !isNamed(header, 'authorization') || !BOXWOOD_CREDENTIAL.test(header[1]))
    // Node has no trailers without the chunked encoding.
    .filter((header) => isChunked || !isNamed(header, 'trailer'))
  const hasLength = headers.some((header) => isNamed(header, 'content-length'))
  const acceptsTrailers = headers.some((header) => isNamed(header, 'te') && /\btrailers\b/i.test(header[1]))
  const [protocol = '', host = ''] = origin.split('://')
  const added: (HeaderPair | false)[] = [
    clientAddress !== null && ['X-Forwarded-For', clientAddress],
    ['X-Forwarded-Proto', protocol],
    ['X-Forwarded-Host', host],
    acceptsTrailers && ['TE', 'trailers'],
    isChunked && ['Transfer-Encoding', 'chunked'],
    !isChunked && !hasLength && WITH_BODY.test(method) && ['Content-Length', '0'],
    upgrade !== undefined && ['Connection', 'Upgrade'],
    upgrade !== undefined && ['Upgrade', upgrade],
  ]
  return [
    ...replaceHost(replaceCookies(forwarded, cookie), request),
    ...added.filter((header) => header !== false),
  ]
}

/** Node joins several Cookie headers, so the first one gets all cookies. */
function replaceCookies(headers: readonly HeaderPair[], cookie: string | undefined): HeaderPair[] {
  const first = headers.findIndex((header) => isNamed(header, 'cookie'))
  return headers.flatMap((header, index): HeaderPair[] => {
    if (!isNamed(header, 'cookie')) return [header]
    return index === first && cookie ? [[header[0], cookie]] : []
  })
}

function replaceHost(
  headers: readonly HeaderPair[],
  { origin, port, rewritesHost }: Pick<ForwardedRequest, 'origin' | 'port' | 'rewritesHost'>,
): readonly HeaderPair[] {
  if (!rewritesHost) return headers
  const local = `localhost:${port}`
  return headers.map(([name, value]): HeaderPair => {
    if (/^host$/i.test(name)) return [name, local]
    if (/^origin$/i.test(name) && value === origin) return [name, `http://${local}`]
    if (/^referer$/i.test(name) && (value === origin || value.startsWith(`${origin}/`)))
      return [name, `http://${local}${value.slice(origin.length)}`]
    return [name, value]
  })
}
