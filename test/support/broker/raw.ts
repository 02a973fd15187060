// Sends bytes on a connection of a program, which an HTTP client would not send.
import type { Duplex } from 'node:stream'

/** Resolves with what was received until it contains `until`, or until the connection ends. */
export function sendRaw(socket: Duplex, text: string, until?: string): Promise<string> {
  return new Promise((resolve) => {
    let received = ''
    const onData = (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (until !== undefined && received.includes(until)) finish()
    }
    function finish(): void {
      socket.off('data', onData).off('close', finish)
      resolve(received)
    }
    socket.on('data', onData).once('close', finish)
    socket.write(text, 'latin1')
  })
}
