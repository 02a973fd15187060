// What a viewer sends between its upgrade request and the response. Reading it detects that the viewer disconnects: Node does not
// read the connection of an upgrade request.
import type { Duplex } from 'node:stream'

/** Clients wait for the response before they send more than the first message. */
const MAX_BYTES = 64 * 1024

/**
 * Reads until the returned function is called, which returns the bytes. Destroys the connection when the viewer ends it, as
 * Node does for other requests.
 * @param head bytes that have been read already
 */
export function readEarlyData(socket: Duplex, head: Buffer): () => Buffer {
  const chunks = [head]
  let size = head.length
  const onData = (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    if (size > MAX_BYTES) socket.destroy()
  }
  const onEnd = () => void socket.destroy()
  socket.on('data', onData).once('end', onEnd)
  return () => {
    socket.off('data', onData).off('end', onEnd).pause()
    return Buffer.concat(chunks)
  }
}
