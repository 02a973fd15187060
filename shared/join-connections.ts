// Joins two byte streams, such as a TCP socket and a TcpOverWebSocket, to one connection.
import type { Duplex } from 'node:stream'
import { RESET_TIMEOUT_MS, TcpOverWebSocket } from './tcp-over-websocket.ts'

/**
 * Copies the bytes of each to the other. The end of one direction ends only that direction. When one of the two fails, the
 * other is reset after it has sent the written bytes. Both must allow half-open connections.
 */
export function joinConnections(a: Duplex, b: Duplex): void {
  resetWith(a, b)
  resetWith(b, a)
  a.pipe(b)
  b.pipe(a)
}

function resetWith(source: Duplex, target: Duplex): void {
  // 'close' follows.
  source.on('error', () => undefined)
  const onClose = () => {
    // After both ends, the target sends what is left, and closes by itself.
    if (!source.readableEnded || !source.writableFinished) reset(target)
  }
  if (source.destroyed) onClose()
  else source.once('close', onClose)
}

/** A socket of node:net. Its destroy() would send a FIN, which is the regular end. */
type ResettableSocket = Duplex & { resetAndDestroy(): void }

function reset(stream: Duplex): void {
  if (stream.destroyed) return
  if (stream instanceof TcpOverWebSocket) stream.resetSoon()
  else if ('resetAndDestroy' in stream) resetSocket(stream as ResettableSocket)
  else stream.destroy()
}

/** Node sends the written bytes before the reset. A peer that does not read would keep the socket open. */
function resetSocket(socket: ResettableSocket): void {
  const timer = setTimeout(() => socket.destroy(), RESET_TIMEOUT_MS).unref()
  socket.once('close', () => clearTimeout(timer))
  socket.resetAndDestroy()
}
