// Sends one request to an agent as one HTTP/2 stream.
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import { finished, Readable } from 'node:stream'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { createTimeoutError } from './deadline.ts'
import type { TunnelRequest, TunnelResponse } from './types.ts'

/** A command may run for 10 minutes before the response headers. */
const HEAD_TIMEOUT_MS = (LIMITS.execTimeoutSeconds.max + 60) * 1000

/**
 * @param onDone called once, when the stream has closed
 * @returns status and headers, and the body as a stream. Rejects with box_unreachable, or with the signal's reason.
 */
export function sendRequest(
  h2: ClientHttp2Session,
  request: TunnelRequest,
  onDone: () => void,
): Promise<TunnelResponse> {
  const { method, path, headers, body, signal } = request
  const content = Buffer.isBuffer(body) ? { 'content-length': String(body.length) } : {}
  let stream: ClientHttp2Stream
  try {
    signal?.throwIfAborted()
    stream = h2.request(
      { ...headers, ...content, ':method': method, ':path': path },
      { endStream: body === undefined },
    )
  } catch (error) {
    onDone()
    return Promise.reject(
      signal?.aborted ? error : new ApiError('box_unreachable', undefined, { cause: error }),
    )
  }
  return new Promise((resolve, reject) => {
    let failure: unknown
    let responseBody: Readable | undefined
    const fail = (cause: unknown) => {
      failure ??= cause
      responseBody?.destroy(failure as Error)
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL)
    }
    const timer = setTimeout(() => fail(createTimeoutError()), request.headTimeoutMs ?? HEAD_TIMEOUT_MS)
    const onAbort = () => fail(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    let cause: Error | undefined
    stream.on('error', (error) => {
      cause = error
    })
    stream.once('response', (responseHeaders, flags) => {
      clearTimeout(timer)
      if (failure !== undefined) return
      responseBody = readBody(h2, stream, responseHeaders['content-length'])
      // Without a body, Node may close the stream without emitting 'end'.
      if (flags & constants.NGHTTP2_FLAG_END_STREAM) complete(responseBody)
      const status = responseHeaders[':status'] ?? 0
      resolve({ status, headers: flatten(responseHeaders), body: responseBody })
    })
    stream.once('close', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      onDone()
      if (responseBody !== undefined && isComplete(responseBody)) return
      const error = failure ?? new ApiError('box_unreachable', undefined, { cause })
      if (responseBody === undefined) reject(error)
      else responseBody.destroy(error as Error)
    })
    if (Buffer.isBuffer(body)) stream.end(body)
    else if (body !== undefined) sendBody(body, stream, fail)
  })
}

/** Does not use pipeline(): it would destroy the response too when the agent responds before the end of the request body. */
function sendBody(body: Readable, stream: ClientHttp2Stream, fail: (cause: unknown) => void): void {
  body.pipe(stream)
  finished(body, { writable: false }, (error) => {
    if (error) fail(error)
  })
  stream.once('close', () => {
    body.unpipe(stream)
    body.resume()
  })
}

const completed = new WeakSet<Readable>()
const isComplete = (body: Readable): boolean => completed.has(body)

function complete(body: Readable): void {
  if (isComplete(body)) return
  completed.add(body)
  body.push(null)
}

/**
 * Copies the stream's data to a stream of its own. Node emits 'end' or just 'close' for an HTTP/2 stream that was reset with
 * CANCEL or whose session was destroyed; here a truncated body is always an error.
 */
function readBody(h2: ClientHttp2Session, stream: ClientHttp2Stream, declared: string | undefined): Readable {
  let missing = declared === undefined ? 0 : Number(declared)
  const body = new Readable({
    highWaterMark: 256 * 1024,
    read() {
      stream.resume()
    },
    destroy(error, done) {
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL)
      stream.resume()
      done(error)
    },
  })
  // An error before the caller reads the body must not be unhandled.
  body.on('error', () => undefined)
  stream.on('data', (chunk: Buffer) => {
    missing -= chunk.length
    if (!body.destroyed && !body.push(chunk)) stream.pause()
  })
  stream.once('end', () => {
    // `destroyed` is not checked, because it is also set for a stream that ended normally.
    const isReset = stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted
    if (isReset || h2.destroyed) return
    if (declared !== undefined && missing > 0) return
    complete(body)
  })
  return body
}

function flatten(headers: IncomingHttpHeaders): Record<string, string> {
  const flat: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (name.startsWith(':') || value === undefined) continue
    flat[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return flat
}
