// Opens the WebSocket of a terminal, with a ticket as a subprotocol: a browser sets no headers, and URLs are logged.
import type { BoxClient } from '../api/box-client.ts'
import type { TerminalSocket, TerminalSocketHandlers } from '../api/terminal-connection.ts'

/** See ATTACH_SUBPROTOCOL and TICKET_SUBPROTOCOL_PREFIX of shared/attach-format.ts. */
const SUBPROTOCOL = 'boxwood'
const TICKET_PREFIX = 'boxwood.ticket.'

export function openTerminalSocket(
  client: Pick<BoxClient, 'root' | 'getTicket'>,
  query: Record<string, string>,
  { onText, onBytes, onClose }: TerminalSocketHandlers,
): TerminalSocket {
  let socket: WebSocket | null = null
  let isClosed = false
  const open = (ticket: string) => {
    if (isClosed) return
    const url = new URL(`terminal?${new URLSearchParams(query)}`, client.root)
    url.protocol = url.protocol.replace('http', 'ws')
    socket = new WebSocket(url, [SUBPROTOCOL, TICKET_PREFIX + ticket])
    socket.binaryType = 'arraybuffer'
    socket.onmessage = ({ data }) =>
      typeof data === 'string' ? onText(data) : onBytes(new Uint8Array(data as ArrayBuffer))
    socket.onclose = onClose
  }
  client.getTicket().then(open, onClose)
  return {
    send: (data) => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(data)
    },
    close() {
      isClosed = true
      socket?.close()
    },
  }
}
