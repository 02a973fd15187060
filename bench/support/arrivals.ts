// What a measurement reads: a socket or a pipe, without the layers of Node's streams and HTTP. A program that wakes now
// and then needs as long for those as for all that is to be measured, and ssh has no part like it.
import { constants, openSync } from 'node:fs'
import { connect, type OnReadOpts, Socket } from 'node:net'

/**
 * Calls back with each piece as it arrives; it is ASCII. `at` is when it had been read and nothing else had been done yet,
 * in milliseconds by the clock of process.hrtime: what a client makes of it is the client's.
 */
export type OnText = (text: string, at: number) => void

const BUFFER_BYTES = 64 * 1024

function reading(onText: OnText): OnReadOpts {
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES)
  return {
    buffer,
    callback(length) {
      const at = Number(process.hrtime.bigint()) / 1e6
      onText(buffer.toString('latin1', 0, length), at)
      return true
    },
  }
}

/** @param path of a FIFO, to which somebody may come to write */
export function readFifo(path: string, onText: OnText): Socket {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false, onread: reading(onText) }).on(
    'error',
    () => undefined,
  )
}

/** Asks over HTTP for server-sent events. Resolves with its connection when the first event is there. */
export function readEvents(
  url: URL,
  headers: Record<string, string>,
  onEvent: (name: string, data: string, at: number) => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let rest = ''
    const head: OnText = (text, at) => {
      rest += text
      const end = rest.indexOf('\r\n\r\n')
      if (end === -1) return
      if (!rest.startsWith('HTTP/1.1 200 ')) {
        socket.destroy(new Error(rest))
        return
      }
      const first = rest.slice(end + 2)
      rest = ''
      read = events
      events(first, at)
    }
    const events: OnText = (text, at) => {
      const pieces = (rest + text).split('\n\n')
      rest = pieces.pop() ?? ''
      for (const piece of pieces) {
        // Chunks of the body begin with a line of their own; in JSON there is no carriage return.
        const [name = '', , data = ''] = piece.replace(CHUNK_HEAD, '').split('\n')
        onEvent(name.slice('event: '.length), data.slice('data: '.length), at)
      }
      if (pieces.length > 0) resolve(socket)
    }
    let read = head
    const { hostname, port, pathname, search } = url
    const onread = reading((text, at) => read(text, at))
    const socket = connect({ host: hostname, port: Number(port), onread }).once('error', reject)
    const lines = Object.entries({ host: url.host, ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`)
  })
}

const CHUNK_HEAD = /\r\n[0-9a-f]+\r\n/g
