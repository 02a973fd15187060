// Reads a connection into two blocks of memory by turns: nothing is allocated for what arrives, and nothing copied.
import { connect as connectTcp, isIP, type Socket, type TcpNetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

export type BlockReader = {
  readonly socket: Socket
  /**
   * What arrives, in pieces of a whole block but for the last one. A piece is out of use once the next one is asked for.
   * Ends when the other side does, and throws when the connection breaks. To be called once.
   */
  blocks(): AsyncGenerator<Buffer, void, undefined>
}

/** While one block is used, the other one is filled. When both are full, nothing is read and the sender has to wait. */
export function connectBlockReader(url: URL, blockBytes: number): BlockReader {
  const memory = [Buffer.allocUnsafeSlow(blockBytes), Buffer.allocUnsafeSlow(blockBytes)] as const
  const full: Buffer[] = []
  let lent: Buffer | null = null
  let active: Buffer = memory[0]
  let filled = 0
  let stopped = false
  let over: Error | 'ended' | null = null
  let wake = () => {}

  const onread = {
    // Node asks right after the callback, also when that stops the reading: the next place has to be known by then.
    buffer: () => active.subarray(filled),
    callback(count: number): boolean {
      filled += count
      if (filled < blockBytes) return true
      full.push(active)
      active = active === memory[0] ? memory[1] : memory[0]
      filled = 0
      stopped = lent === active || full.includes(active)
      wake()
      return !stopped
    },
  }
  const socket = connect(url, onread)
  const end = (how: Error | 'ended') => {
    over ??= how
    wake()
  }
  socket.once('end', () => end('ended'))
  socket.on('error', end)
  socket.once('close', () => end(new Error('the connection was closed')))

  return {
    socket,
    async *blocks() {
      for (;;) {
        lent = full.shift() ?? null
        if (lent !== null) {
          yield lent
          lent = null
        } else if (over !== null) {
          break
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
        if (stopped && !full.includes(active)) {
          stopped = false
          socket.resume()
        }
      }
      if (over instanceof Error) throw over
      if (filled > 0) yield active.subarray(0, filled)
    },
  }
}

function connect(url: URL, onread: TcpNetConnectOpts['onread']): Socket {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol !== 'https:')
    return connectTcp({ host, port: Number(url.port || 80), noDelay: true, onread })
  const options: ConnectionOptions & Pick<TcpNetConnectOpts, 'onread'> = {
    host,
    port: Number(url.port || 443),
    servername: isIP(host) ? '' : host,
    onread,
  }
  return connectTls(options).setNoDelay(true)
}
