// WebSockets: what the client needs of those of browsers, of other runtimes and of packages.
import { ConnectionError } from './errors.ts'

export type Socket = {
  /** Has no effect unless the socket is open. */
  send(data: string | Uint8Array<ArrayBuffer>): void
  /** Sends what was passed to `send` before, then closes with the code 1000. */
  close(): void
  /** Whether `onPing` is called. Browsers, and most runtimes, hide the pings of the server. */
  readonly reportsPings: boolean
}

export type SocketHandlers = {
  /** Called before the other functions. */
  onOpen?(socket: Socket): void
  onMessage(data: string | Uint8Array<ArrayBuffer>): void
  onPing?(): void
  /**
   * Called once, for a socket that was open.
   * @param code that of the WebSocket
   * @param violation how the server has violated the protocol of WebSockets, or a limit of the client
   */
  onClose(code: number, violation?: string): void
}

const REFUSAL = {
  code: 'no_response',
  message: 'The coordinator does not respond: the WebSocket was refused.',
  status: 0,
}

/**
 * Opens a WebSocket of the runtime. Resolves when it is open. Rejects with a ConnectionError when it was refused: no runtime
 * says why.
 * @param protocols Node, Bun and Deno also accept `{ headers }`
 * @param signal closes it, also when it is open
 */
export function openSocket(
  url: string,
  protocols: string[] | { headers: Record<string, string> },
  handlers: SocketHandlers,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const ws = new WebSocket(url.replace(/^http/, 'ws'), protocols as string[])
    ws.binaryType = 'arraybuffer'
    const socket: Socket = {
      send: (data) => ws.readyState === WebSocket.OPEN && ws.send(data),
      close: () => ws.close(1000),
      reportsPings: false,
    }
    const close = () => ws.close()
    let isOpen = false
    ws.onopen = () => {
      isOpen = true
      handlers.onOpen?.(socket)
      resolve(socket)
    }
    ws.onmessage = ({ data }) =>
      handlers.onMessage(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer))
    ws.onclose = ({ code }) => {
      signal.removeEventListener('abort', close)
      if (isOpen) handlers.onClose(code)
      else reject(signal.aborted ? signal.reason : new ConnectionError(REFUSAL))
    }
    // The package ws throws an error that nothing handles. The close follows.
    ws.onerror = () => undefined
    signal.addEventListener('abort', close)
  })
}
