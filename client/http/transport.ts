// How the client sends requests.

import { endOnAbort } from './end-on-abort.ts'
import { toParts } from './send-in-parts.ts'
import type { Socket, SocketHandlers } from './socket.ts'

export type RequestBody =
  | string
  | Uint8Array<ArrayBuffer>
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
/** The bytes of a response. They are read as fast as their reader reads. */
export type ResponseBody = AsyncIterable<Uint8Array<ArrayBuffer>>

export type TransportRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body?: RequestBody
  /** Aborts the request, and the body of the response. */
  signal: AbortSignal
  /** Gets the bytes of the body that were sent, where the transport knows it. That of fetch() does not. */
  onProgress?: (bytes: number) => void
}

/** A part of `Response` of fetch(). */
export type TransportResponse = {
  status: number
  headers: { get(name: string): string | null }
  /** null: there is none. */
  body: ResponseBody | null
}

/** A response of which the body is unread. */
export type OpenResponse = TransportResponse & {
  /** Closes the connection when the body is not read to its end. */
  cancel(): void
}

export type Transport = {
  /**
   * Sends a request once. It does not follow redirects: the API key goes to no other origin.
   * @returns the response, whose body is unread. Rejects when there is none, and with the reason of the signal
   */
  send(request: TransportRequest): Promise<TransportResponse>
  /**
   * Opens a WebSocket. Resolves when it is open. When it was refused, rejects with the error of the response, or with a
   * ConnectionError where the runtime hides the response. Default: there are no WebSockets.
   */
  connect?(request: SocketRequest, handlers: SocketHandlers): Promise<Socket>
}

export type SocketRequest = {
  /** With the scheme http or https. */
  url: string
  headers: Record<string, string>
  /** Closes the WebSocket, also when it is open. */
  signal: AbortSignal
}

/** `duplex` is what fetch() requires for a stream. */
type FetchInit = RequestInit & { duplex?: 'half' }

/** @param credentials whether a page sends its cookies. Default: to its own origin */
export const createFetchTransport = (credentials?: RequestCredentials): Transport => ({
  async send({ method, url, headers, body, signal }) {
    const init: FetchInit = { method, headers, signal, redirect: 'manual' }
    if (credentials !== undefined) init.credentials = credentials
    const parts = toParts(body)
    if (parts !== null) init.headers = { ...headers, 'content-length': String(parts.length) }
    if (parts !== null) init.body = parts.stream
    else if (body !== undefined)
      init.body = isIterable(body) ? endOnAbort(toReadableStream(body), signal) : body
    if (init.body instanceof ReadableStream) init.duplex = 'half'
    const response = await fetch(url, init)
    return { status: response.status, headers: response.headers, body: toIterable(response.body) }
  },
})

/** Whether it can be read only once. */
export const isIterable = (
  body: RequestBody,
): body is ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> =>
  typeof body === 'object' && (Symbol.asyncIterator in body || 'getReader' in body)

/** Safari has no asynchronous iterator of a stream. */
function toIterable(stream: ReadableStream<Uint8Array<ArrayBuffer>> | null): ResponseBody | null {
  if (stream === null || Symbol.asyncIterator in stream) return stream as ResponseBody | null
  return readStream(stream)
}

async function* readStream(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

export function toReadableStream<Bytes extends Uint8Array>(
  body: ReadableStream<Bytes> | AsyncIterable<Bytes>,
): ReadableStream<Bytes> {
  if (body instanceof ReadableStream) return body
  const iterator = body[Symbol.asyncIterator]()
  return new ReadableStream<Bytes>({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
