// Reads a FIFO or a server-sent event stream and timestamps each chunk, without Node's stream and HTTP layers. In a
// mostly idle process these layers take as long as the measured path itself, and the ssh client does not have them.
import { constants, openSync } from 'node:fs'
import { connect, type OnReadOpts, Socket } from 'node:net'

/** Receives each chunk, which is ASCII. `receivedAt` is in milliseconds of process.hrtime, taken right after the read. */
export type OnText = (text: string, receivedAt: number) => void

const BUFFER_BYTES = 64 * 1024
/** The size lines of HTTP chunked encoding, each with the line break that ends the previous chunk. */
const CHUNK_HEADERS = /\r\n[0-9a-f]+\r\n/g

function createReadOptions(onText: OnText): OnReadOpts {
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES)
  return {
    buffer,
    callback(length) {
      const receivedAt = Number(process.hrtime.bigint()) / 1e6
      onText(buffer.toString('latin1', 0, length), receivedAt)
      return true
    },
  }
}

/** Reads a FIFO. Opening does not wait for a writer. */
export function readFifo(path: string, onText: OnText): Socket {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false, onread: createReadOptions(onText) }).on(
    'error',
    () => undefined,
  )
}

/** Requests server-sent events over HTTP. Resolves with the connection after the first event. */
export function readEvents(
  url: URL,
  headers: Record<string, string>,
  onEvent: (name: string, data: string, receivedAt: number) => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let incomplete = ''
    const parseHeaders: OnText = (text, receivedAt) => {
      incomplete += text
      const end = incomplete.indexOf('\r\n\r\n')
      if (end === -1) return
      if (!incomplete.startsWith('HTTP/1.1 200 ')) {
        socket.destroy(new Error(incomplete))
        return
      }
      // Keeps one CRLF, so that CHUNK_HEADERS also matches the first chunk header.
      const body = incomplete.slice(end + 2)
      incomplete = ''
      parse = parseEvents
      parseEvents(body, receivedAt)
    }
    const parseEvents: OnText = (text, receivedAt) => {
      const events = (incomplete + text).split('\n\n')
      incomplete = events.pop() ?? ''
      for (const event of events) {
        // JSON escapes carriage returns, so the data never contains anything like a chunk header.
        const [name = '', , data = ''] = event.replace(CHUNK_HEADERS, '').split('\n')
        onEvent(name.slice('event: '.length), data.slice('data: '.length), receivedAt)
      }
      if (events.length > 0) resolve(socket)
    }
    let parse = parseHeaders
    const { hostname, port, pathname, search } = url
    const onread = createReadOptions((text, receivedAt) => parse(text, receivedAt))
    const socket = connect({ host: hostname, port: Number(port), onread }).once('error', reject)
    const headerLines = Object.entries({ host: url.host, ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${headerLines.join('')}\r\n`)
  })
}
