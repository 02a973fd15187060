// Serves one request of a program on a box to a host of a secret.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BROKER_TEST_HOST } from '../../../shared/secret-hosts.ts'
import { forward } from '../../http/forward/forward.ts'
import { removeHopByHop } from '../../http/forward/hop-by-hop.ts'
import { isNamed, toPairs } from '../../http/forward/raw-headers.ts'
import { getUpgrade } from '../../http/websocket.ts'
import type { SecretBroker } from '../../secrets/types.ts'
import type { BrokerConnection } from './broker-connections.ts'
import { BrokerError, toBrokerError } from './broker-error.ts'
import { checkRequest } from './check-request.ts'
import type { BrokerResult } from './metrics.ts'
import { readSmallBody } from './read-small-body.ts'
import { Matcher } from './scrub/matcher.ts'
import { MIN_VALUE_BYTES } from './scrub/needles.ts'
import { createResponseTransform, scrubHeaders } from './scrub/response-transform.ts'
import { substituteBody } from './substitute-body.ts'
import { substituteUrl } from './substitute-url.ts'
import { Substitution } from './substitution.ts'
import { onConnected, type UpstreamPool } from './upstream-agents.ts'
import { createUpstreamHeaders } from './upstream-headers.ts'
import type { ValueCache } from './value-cache.ts'

export type ServeContext = {
  connection: BrokerConnection
  broker: SecretBroker
  upstream: UpstreamPool
  values: ValueCache
}

/** A box may send a placeholder many times. No common server accepts larger headers. */
const MAX_SENT_HEADER_BYTES = 64 * 1024

/** Each request creates a matcher for them. The largest value fits. */
const MAX_BASIC_BYTES = 24 * 1024

const sumBytes = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

/**
 * Resolves when the response has begun. The mounts are read for each request.
 * @throws BrokerError when there is no response yet
 */
export async function serveRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { connection, broker, upstream, values }: ServeContext,
): Promise<BrokerResult> {
  const { boxId, host } = connection
  const problem = checkRequest(request, host)
  if (problem !== null) throw problem
  // The mounts are read when the request is complete.
  const body = await readSmallBody(request, response)
  const found = await broker.find(boxId, host)
  if (found === null)
    throw new BrokerError('host_not_brokered', `No secret that is mounted on the box has the host ${host}.`)
  if (host === BROKER_TEST_HOST) {
    response.writeHead(204).end()
    return 'test'
  }
  // The program or a cut may have closed the connection meanwhile.
  if (connection.isClosed || response.destroyed) return 'refused'
  const { secrets, matcher, release } = values.acquire(found)
  response.once('close', release)
  const upgrade = getUpgrade(request)
  const substitution = new Substitution(secrets)
  const url = substituteUrl(request.url ?? '/', substitution)
  const content = body && substituteBody(body.content, body.format, substitution)
  const { headers, basic } = createUpstreamHeaders(
    {
      method: request.method ?? '',
      headers: toPairs(request.rawHeaders),
      isChunked: request.headers['transfer-encoding'] !== undefined,
      isUpgrade: upgrade !== undefined,
      bodyLength: content?.length,
    },
    substitution,
  )
  if (sumBytes([url, ...headers.flat()]) > MAX_SENT_HEADER_BYTES)
    throw new BrokerError(
      'headers_too_large',
      `The headers and the URL are larger than ${MAX_SENT_HEADER_BYTES / 1024} KiB with the values of the secrets.`,
    )
  let isRecorded = false
  function recordUses(): void {
    if (isRecorded) return
    isRecorded = true
    for (const secretId of substitution.secretIds) broker.recordUse({ secretId, boxId, host })
  }
  const matchers = [...(matcher === null ? [] : [matcher]), ...createBasicMatcher(basic)]
  const transform = createResponseTransform(matchers)
  try {
    const result = await forward({
      request,
      response,
      upgrade,
      agent: upstream.agent,
      url,
      headers,
      ...(content !== null && { body: content }),
      connection: upstream.target,
      onRequest: (outgoing) => onConnected(outgoing, host, recordUses),
      transform,
      createResponseHeaders: (incoming, isChunked) =>
        scrubHeaders(
          removeHopByHop(toPairs(incoming.rawHeaders)).filter(
            (header) => isChunked || !isNamed(header, 'trailer'),
          ),
          { matchers, isDecoded: !isBodyless(request, incoming) && transform.changesLength(incoming) },
        ),
    })
    if (result === 'upgrade') connection.isUpgraded = true
    return 'forwarded'
  } catch (error) {
    throw toBrokerError(error as NodeJS.ErrnoException, host)
  }
}

const isBodyless = ({ method }: IncomingMessage, { statusCode = 0 }: IncomingMessage): boolean =>
  method === 'HEAD' || statusCode === 101 || statusCode === 204 || statusCode === 304

/** Finds what `Authorization: Basic` has. Its edges depend on more than the value. */
function createBasicMatcher(texts: readonly string[]): Matcher[] {
  const needles = texts.filter(({ length }) => length >= MIN_VALUE_BYTES).map((text) => Buffer.from(text))
  if (needles.length === 0) return []
  if (sumBytes(texts) > MAX_BASIC_BYTES)
    throw new BrokerError(
      'headers_too_large',
      `The headers have more than ${MAX_BASIC_BYTES / 1024} KiB of Basic credentials with the values of the secrets.`,
    )
  return [new Matcher(needles)]
}
