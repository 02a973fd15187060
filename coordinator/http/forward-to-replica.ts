// Forwards a client's request to another coordinator, whole: its body, its response and upgrades are streams.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PEER_HEADER } from '../replicas/peer-header.ts'
import type { PeerAddress, Peers } from '../replicas/peers.ts'
import { forward, RefusedError, UnconnectedError } from './forward/forward.ts'
import { removeHopByHop } from './forward/hop-by-hop.ts'
import { type HeaderPair, isNamed, toPairs } from './forward/raw-headers.ts'
import { hasBody } from './lingering-close.ts'
import { getUpgrade } from './websocket.ts'

const MISDIRECTED_STATUS = 421

/** The response of a coordinator that is not the right one for a forwarded request, with its headers. */
export const MISDIRECTED = { status: MISDIRECTED_STATUS, headers: { [PEER_HEADER]: 'misdirected' } }

/** The largest body that can be sent a second time. */
const MAX_REPEATED_BYTES = 64 * 1024

export type ForwardOptions = {
  /** See PeerClaim. */
  clientAddress: string | null
  /** The id of the box that the request is about. */
  boxId?: string
  /** The other coordinator responds to `Expect: 100-continue`. Default: this one has done so. */
  keepsExpect?: boolean
}

/**
 * forwarded: the headers of the response have been sent. refused: the other coordinator is not the right one, and nothing has
 * been done. unconnected: it does not listen or respond any more, and nothing has been done. failed: there was no response, and it is unknown
 * whether the request has been served; or it was refused after a part of a large body was sent.
 */
export type ForwardResult = 'forwarded' | 'refused' | 'unconnected' | 'failed'

/** Forwards a request, also a second time after it was refused, or there was no connection. */
export type ForwardToReplica = (replicaId: string) => Promise<ForwardResult>

export function createForwardToReplica(
  peers: Pick<Peers, 'findAddress' | 'sign'>,
  { request, response }: { request: IncomingMessage; response: ServerResponse },
  options: ForwardOptions,
): ForwardToReplica {
  let readBody: (() => Buffer | undefined) | undefined
  let body: Buffer | undefined

  async function send({ replicaId, url, agent, isReachable, watch }: PeerAddress): Promise<ForwardResult> {
    if (!isReachable) return 'unconnected'
    try {
      await forward({
        request,
        response,
        upgrade: getUpgrade(request),
        agent,
        url: request.url ?? '/',
        headers: [
          ...createHeaders(request, options),
          peers.sign(request, replicaId, { client: options.clientAddress, box: options.boxId }),
        ],
        connection: {
          protocol: url.protocol,
          host: url.hostname.replace(/^\[|\]$/g, ''),
          port: url.port || (url.protocol === 'https:' ? 443 : 80),
        },
        createResponseHeaders: ({ rawHeaders, statusCode, headers }, isChunked) => [
          ...removeHopByHop(toPairs(rawHeaders)).filter((header) => isChunked || !isNamed(header, 'trailer')),
          ...(statusCode !== 101 && headers.upgrade !== undefined
            ? [['Upgrade', headers.upgrade] as const]
            : []),
        ],
        isRefusal: ({ statusCode, headers }) =>
          statusCode === MISDIRECTED.status && headers[PEER_HEADER] !== undefined,
        onRequest: watch,
        onConnected() {
          readBody ??= recordBody(request)
        },
        ...(body !== undefined && { body }),
      })
      return 'forwarded'
    } catch (error) {
      if (error instanceof UnconnectedError) return 'unconnected'
      if (!(error instanceof RefusedError)) return 'failed'
      body = readBody?.()
      return body === undefined ? 'failed' : 'refused'
    }
  }

  return async (replicaId) => {
    const address = await peers.findAddress(replicaId)
    return address === null ? 'refused' : send(address)
  }
}

function createHeaders(
  { rawHeaders, headers }: IncomingMessage,
  { keepsExpect = false }: ForwardOptions,
): HeaderPair[] {
  const isChunked = headers['transfer-encoding'] !== undefined
  const forwarded = removeHopByHop(toPairs(rawHeaders))
    .filter((header) => keepsExpect || !isNamed(header, 'expect'))
    .filter((header) => isChunked || !isNamed(header, 'trailer'))
  if (isChunked) forwarded.push(['Transfer-Encoding', 'chunked'])
  if (/\btrailers\b/i.test(`${headers.te ?? ''}`)) forwarded.push(['TE', 'trailers'])
  if (headers.upgrade !== undefined) forwarded.push(['Connection', 'Upgrade'], ['Upgrade', headers.upgrade])
  return forwarded
}

/** The returned function returns the body that has been read; undefined: it is not complete, or too large. */
function recordBody(request: IncomingMessage): () => Buffer | undefined {
  if (!hasBody(request)) return () => Buffer.alloc(0)
  const chunks: Buffer[] = []
  let size = 0
  // The sender frees the chunks.
  const onData = (chunk: Buffer) => {
    size += chunk.length
    if (size <= MAX_REPEATED_BYTES) chunks.push(Buffer.from(chunk))
    else request.off('data', onData)
  }
  request.on('data', onData)
  return () => (request.complete && size <= MAX_REPEATED_BYTES ? Buffer.concat(chunks) : undefined)
}
