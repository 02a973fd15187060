// One request to an agent as one HTTP/2 stream: its body out, its head and body in, its end in every case.
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import { finished, Readable } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { TunnelRequest, TunnelResponse } from './types.ts'

/** A command may run for ten minutes before its answer begins. */
const HEAD_TIMEOUT_MS = (LIMITS.execTimeoutSeconds.max + 60) * 1000

/**
 * @param onDone called once, when the stream has closed.
 * @returns the answer's head, with its body to be read. Rejects with box_unreachable, or with the signal's reason.
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
    let answer: Readable | undefined
    const fail = (cause: unknown) => {
      failure ??= cause
      answer?.destroy(failure as Error)
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL)
    }
    const timer = setTimeout(
      () => fail(new ApiError('box_unreachable', 'The box did not answer in time.')),
      request.headTimeoutMs ?? HEAD_TIMEOUT_MS,
    )
    const abort = () => fail(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    let cause: Error | undefined
    stream.on('error', (error) => {
      cause = error
    })
    stream.once('response', (responseHeaders, flags) => {
      clearTimeout(timer)
      if (failure !== undefined) return
      answer = readBody(h2, stream, responseHeaders['content-length'])
      // Without a body, Node may close the stream without an end.
      if (flags & constants.NGHTTP2_FLAG_END_STREAM) finish(answer)
      resolve({ status: responseHeaders[':status'] ?? 0, headers: flatten(responseHeaders), body: answer })
    })
    stream.once('close', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      onDone()
      const error = failure ?? new ApiError('box_unreachable', undefined, { cause })
      if (answer === undefined) reject(error)
      else if (!answer.readableEnded && !isComplete(answer)) answer.destroy(error as Error)
    })
    if (Buffer.isBuffer(body)) stream.end(body)
    else if (body !== undefined) send(body, stream, fail)
  })
}

/** Not pipeline(): that would destroy the stream's answer side too when the agent answers before the body's end. */
function send(body: Readable, stream: ClientHttp2Stream, fail: (cause: unknown) => void): void {
  body.pipe(stream)
  finished(body, { writable: false }, (error) => {
    if (error) fail(error)
  })
  stream.once('close', () => {
    body.unpipe(stream)
    body.resume()
  })
}

const complete = new WeakSet<Readable>()
const isComplete = (answer: Readable): boolean => complete.has(answer)

function finish(answer: Readable): void {
  if (isComplete(answer)) return
  complete.add(answer)
  answer.push(null)
}

/**
 * The stream's data as a stream of its own, because Node ends or merely closes an HTTP/2 stream that was reset
 * with CANCEL or whose session died: a body that was cut must be an error.
 */
function readBody(h2: ClientHttp2Session, stream: ClientHttp2Stream, declared: string | undefined): Readable {
  let missing = declared === undefined ? 0 : Number(declared)
  const answer = new Readable({
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
  // Whoever reads it sees the error; between the answer's head and the reading it must not be nobody's.
  answer.on('error', () => undefined)
  stream.on('data', (chunk: Buffer) => {
    missing -= chunk.length
    if (!answer.destroyed && !answer.push(chunk)) stream.pause()
  })
  stream.once('end', () => {
    // A stream that has ended well may be destroyed already; one whose session was destroyed ends the same way.
    const cut = stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted
    if (cut || h2.destroyed) return
    if (declared !== undefined && missing > 0) return
    finish(answer)
  })
  return answer
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
