// Forwards a request to an HTTP server, such as one on a port of a box, and its response to the viewer. Bytes are not buffered,
// and only a transform changes them. Node parses the message of both sides, so that both have the same end of every message.
import {
  type Agent,
  type ClientRequest,
  request as createRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { releaseSentChunks } from '../../base/release-sent-chunks.ts'
import { hasBody, isBodyPending } from '../lingering-close.ts'
import { connectUpgraded } from './connect-upgraded.ts'
import { readEarlyData } from './early-data.ts'
import { forwardInformation } from './forward-information.ts'
import { filterTrailers } from './hop-by-hop.ts'
import { limitBodyIdleTime } from './limit-body-idle-time.ts'
import { type HeaderPair, toPairs } from './raw-headers.ts'

export type Forwarding = {
  request: IncomingMessage
  response: ServerResponse
  /** The connection of an upgrade request. */
  upgrade: { socket: Duplex; head: Buffer } | undefined
  agent: Agent
  /** Path and query for the box. */
  url: string
  /** The headers for the box. */
  headers: readonly HeaderPair[]
  /** @param isChunked whether the response to the viewer has the chunked encoding */
  createResponseHeaders(incoming: IncomingMessage, isChunked: boolean): HeaderPair[]
  /** How the agent connects, where it needs that. */
  connection?: RequestOptions
  /** Called with each request to the server: a second one when the first has used a stale connection. */
  onRequest?(outgoing: ClientRequest): void
  transform?: ResponseTransform
  /** The body for the server, when that of the request has been read. Default: the body of the request, as a stream. */
  body?: Buffer
  /** See limitBodyIdleTime(). Default: no limit. */
  bodyIdleMs?: number
  /**
   * Called when there is a connection: the body is read from then on. Without a connection, forward() rejects with
   * UnconnectedError. Default: the body is read at once.
   */
  onConnected?(): void
  /** Whether the server refuses to serve the request: forward() rejects with RefusedError. Default: no response is a refusal. */
  isRefusal?(incoming: IncomingMessage): boolean
}

/** There is no connection to the server: nothing has been sent to it, and the body has not been read. */
export class UnconnectedError extends Error {}

/** The server has refused the request. Nothing has been sent to the viewer. */
export class RefusedError extends Error {}

/** Changes what the viewer gets, except the headers. */
export type ResponseTransform = {
  /** The status message, names and values of trailers, and headers of responses with a status of 1xx. */
  changeText(text: string): string
  /** The body passes through these streams. */
  createBodyStreams(incoming: IncomingMessage): Duplex[]
  /** Whether the body does not have its length in Content-Length any more. */
  changesLength(incoming: IncomingMessage): boolean
  /** What the server sends after an upgrade passes through this stream. */
  createUpgradedStream(): Duplex
}

/** The largest headers of a response. */
export const MAX_HEADER_BYTES = 64 * 1024
/** Responses with a status of 1xx before the response. Servers send one or two. */
const MAX_INFORMATION = 32
const REPEATABLE = /^(?:GET|HEAD|OPTIONS)$/

/** An event stream and an upgraded connection end only when one of the sides ends them. */
export type Forwarded = 'response' | 'event-stream' | 'upgrade'

/**
 * Resolves when the headers of the response have been sent. Rejects when there is no response, with the error of the
 * connection: nothing has been sent then. An error after the headers closes the connection of the viewer.
 */
export async function forward(forwarding: Forwarding): Promise<Forwarded> {
  const { upgrade } = forwarding
  const viewer = upgrade && { stream: upgrade.socket, takeHead: readEarlyData(upgrade.socket, upgrade.head) }
  try {
    return await send(forwarding, viewer)
  } catch (error) {
    if (!(error instanceof StaleConnectionError) || forwarding.response.destroyed) throw error
    return send(forwarding, viewer)
  }
}

/** The viewer of an upgrade request. */
type UpgradingViewer = { stream: Duplex; takeHead(): Buffer }

/** The server has closed a reused connection, possibly before it received the request. */
class StaleConnectionError extends Error {}

function send(forwarding: Forwarding, viewer: UpgradingViewer | undefined): Promise<Forwarded> {
  const { request, response, agent, url, headers } = forwarding
  const { promise, resolve, reject } = Promise.withResolvers<Forwarded>()
  let hasResponse = false
  const fail = (error: Error) => {
    // An incomplete response has an error of its own. A complete one may precede the reset of a server that reads no more.
    if (hasResponse) return
    if (outgoing.reusedSocket && !hasBody(request) && REPEATABLE.test(request.method ?? ''))
      reject(new StaleConnectionError(error.message, { cause: error }))
    else reject(error)
  }
  const outgoing = createRequest({
    agent,
    method: request.method,
    path: url,
    headers: headers.flat(),
    setHost: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    ...forwarding.connection,
  })
  forwarding.onRequest?.(outgoing)
  const destroy = () => {
    // The response may have been sent before the end of the request body.
    if (!outgoing.writableFinished || !response.writableFinished) outgoing.destroy()
  }
  response.once('close', destroy)
  outgoing.on('error', fail)
  outgoing.once('close', () => {
    response.off('close', destroy)
    if (!hasResponse) fail(new Error('the server closed the connection without a response'))
  })
  let informationCount = 0
  outgoing.on('information', (information) => {
    informationCount += 1
    if (informationCount <= MAX_INFORMATION)
      forwardInformation(information, response, forwarding.transform?.changeText)
    else outgoing.destroy(new Error('the server sent too many responses with a status of 1xx'))
  })
  outgoing.once('response', (incoming) => {
    hasResponse = true
    if (forwarding.isRefusal?.(incoming)) {
      incoming.resume()
      return reject(new RefusedError('the server has refused the request'))
    }
    startResponse(incoming, forwarding).then(resolve, (error: unknown) => {
      outgoing.destroy()
      reject(error)
    })
  })
  outgoing.once('upgrade', (incoming, stream, head) => {
    hasResponse = true
    if (viewer === undefined) {
      stream.destroy()
      return reject(new Error('the server upgraded a request that is not an upgrade'))
    }
    response.off('close', destroy)
    response.statusCode = 101
    stream.allowHalfOpen = true
    const { transform } = forwarding
    const changeText = transform?.changeText ?? ((text: string) => text)
    connectUpgraded({
      viewer: { stream: viewer.stream, head: viewer.takeHead() },
      box: { stream, head },
      statusMessage: changeText(incoming.statusMessage ?? ''),
      headers: [
        ...forwarding.createResponseHeaders(incoming, false),
        ['Connection', 'Upgrade'],
        ['Upgrade', changeText(incoming.headers.upgrade ?? '')],
      ],
      transform: transform?.createUpgradedStream(),
    })
    resolve('upgrade')
  })
  if (response.destroyed) destroy()
  const sendAll = () => {
    if (forwarding.body === undefined) sendBody(request, outgoing, forwarding.bodyIdleMs)
    else outgoing.end(forwarding.body)
  }
  const { onConnected } = forwarding
  if (onConnected === undefined) sendAll()
  else
    whenConnected(
      outgoing,
      () => {
        onConnected()
        sendAll()
      },
      (cause) => reject(new UnconnectedError(cause.message, { cause })),
    )
  return promise
}

function whenConnected(
  outgoing: ClientRequest,
  onConnect: () => void,
  onError: (error: Error) => void,
): void {
  outgoing.prependOnceListener('error', onError)
  const connect = () => {
    outgoing.off('error', onError)
    onConnect()
  }
  outgoing.once('socket', (socket) => {
    if (socket.connecting) socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', connect)
    else connect()
  })
}

function sendBody(request: IncomingMessage, outgoing: ClientRequest, idleMs: number | undefined): void {
  if (!hasBody(request)) return void outgoing.end()
  releaseSentChunks(outgoing)
  request.pipe(outgoing, { end: false })
  if (idleMs !== undefined) limitBodyIdleTime(request, outgoing, idleMs)
  // The pipe pauses the request when the connection closes, and the viewer may have to send the rest before it reads.
  outgoing.once('close', () => request.resume())
  request.once('end', () => {
    if (request.headers['transfer-encoding'] !== undefined) addTrailers(outgoing, request)
    outgoing.end()
  })
}

async function startResponse(incoming: IncomingMessage, forwarding: Forwarding): Promise<Forwarded> {
  const { request, response, transform } = forwarding
  const status = incoming.statusCode ?? 0
  // A proxy in front of the coordinator could treat the connection as upgraded.
  if (status < 200)
    throw new Error(`the server sent a response with status ${status}, which is not a final one`)
  const isWithoutBody = request.method === 'HEAD' || status === 204 || status === 304
  const hasLength = incoming.headers['content-length'] !== undefined && !transform?.changesLength(incoming)
  const isChunked = !isWithoutBody && !hasLength && request.httpVersionMinor > 0
  const headers = forwarding.createResponseHeaders(incoming, isChunked)
  // The connection cannot be reused when the rest of the body is discarded.
  const isEarly = isBodyPending(request)
  response.sendDate = false
  const changeText = transform?.changeText ?? ((text: string) => text)
  response.writeHead(status, changeText(incoming.statusMessage ?? ''), [
    ...headers.flat(),
    ...(isEarly ? ['Connection', 'close'] : []),
  ])
  const body = connectStreams(
    incoming,
    isWithoutBody ? [] : (transform?.createBodyStreams(incoming) ?? []),
    response,
  )
  body.once('end', () => {
    if (isChunked) addTrailers(response, incoming, changeText)
    response.end()
  })
  let hasData = false
  body.once('data', () => {
    hasData = true
  })
  releaseSentChunks(response)
  body.pipe(response, { end: false })
  // The first part of the body often arrives with the headers, and is then sent with them.
  setImmediate(() => {
    if (!hasData && !response.writableEnded && !response.destroyed) response.flushHeaders()
  })
  return /^\s*text\/event-stream\b/i.test(incoming.headers['content-type'] ?? '')
    ? 'event-stream'
    : 'response'
}

/** Returns the last stream. An error of one of them closes the connection of the viewer, whose response is incomplete. */
function connectStreams(
  incoming: IncomingMessage,
  streams: readonly Duplex[],
  response: ServerResponse,
): Readable {
  let last: Readable = incoming.on('error', () => response.destroy())
  for (const stream of streams) {
    stream.on('error', () => response.destroy())
    response.once('close', () => stream.destroy())
    last = last.pipe(stream)
  }
  return last
}

function addTrailers(
  target: ClientRequest | ServerResponse,
  { rawTrailers }: IncomingMessage,
  changeText: (text: string) => string = (text) => text,
): void {
  const trailers = filterTrailers(toPairs(rawTrailers))
  if (trailers.length === 0) return
  try {
    // Node's type has no read-only tuples.
    target.addTrailers(
      trailers.map(([name, value]): [string, string] => [changeText(name), changeText(value)]),
    )
  } catch {
    // The sender has sent a trailer that Node does not send. Trailers are optional.
  }
}
