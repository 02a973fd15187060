// Lingering close: a response that is sent before the request body is complete closes its connection, but only after the
// rest of the body was discarded. Closing a socket with unread bytes resets the connection, and the client may then lose
// the response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { HTTP_LIMITS } from '../../shared/limits.ts'

export type LingerLimits = {
  /** Bytes that are discarded at most. */
  bytes: number
  /** Time without a byte. */
  idleMs: number
  totalMs: number
}

export const hasBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** Checks more than `complete`, which Node sets only after the handlers of a request without a body have run. */
export const isBodyPending = (request: IncomingMessage): boolean => hasBody(request) && !request.complete

/** Call for every request before it is handled. */
export function closeAfterEarlyResponse(
  request: IncomingMessage,
  response: ServerResponse,
  limits: LingerLimits = HTTP_LIMITS.linger,
): void {
  const { socket } = request
  let isLingering = false
  // This listener runs before Node's own listener, which would make the counted bytes invisible.
  response.prependOnceListener('finish', () => {
    if (!isBodyPending(request)) return
    isLingering = true
    closeLingering(socket, request, limits)
  })
  // Node calls this after a response with `Connection: close`.
  socket.destroySoon = () => {
    if (!isLingering) Socket.prototype.destroySoon.call(socket)
  }
}

/**
 * Sends FIN after the pending writes and discards what the client sends. Destroys the socket at the end of `source` or at
 * one of the limits.
 */
export function closeLingering(
  socket: Socket,
  source: Readable,
  { bytes, idleMs, totalMs }: LingerLimits = HTTP_LIMITS.linger,
): void {
  const destroy = () => void socket.destroy()
  const idle = setTimeout(destroy, idleMs)
  const total = setTimeout(destroy, totalMs)
  socket.once('close', () => {
    clearTimeout(idle)
    clearTimeout(total)
  })
  socket.on('error', destroy)
  let discarded = 0
  source.on('data', (chunk: Buffer) => {
    idle.refresh()
    discarded += chunk.length
    if (discarded > bytes) destroy()
  })
  const flushed = new Promise<void>((resolve) => void socket.end(resolve))
  const destroyWhenFlushed = () => void flushed.then(destroy)
  // A destroyed source emits no more data.
  if (source.destroyed || source.readableEnded) destroyWhenFlushed()
  else source.once('close', destroyWhenFlushed).once('end', destroyWhenFlushed).resume()
}
