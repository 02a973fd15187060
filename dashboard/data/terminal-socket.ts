// Opens the WebSocket of a terminal, with a ticket as a subprotocol: a browser sets no headers, and URLs are logged.
import { formatQuery } from '../../client/http/calls.ts'
import { openSocket, type Socket, type SocketHandlers } from '../../client/http/socket.ts'
import type { BoxClient } from '../api/box-client.ts'

/** See ATTACH_SUBPROTOCOL and TICKET_SUBPROTOCOL_PREFIX of shared/attach-format.ts. */
const SUBPROTOCOL = 'boxwood'
const TICKET_PREFIX = 'boxwood.ticket.'

export async function openTerminalSocket(
  { root, getTicket }: Pick<BoxClient, 'root' | 'getTicket'>,
  query: object,
  handlers: SocketHandlers,
  signal: AbortSignal,
): Promise<Socket> {
  const protocols = [SUBPROTOCOL, TICKET_PREFIX + (await getTicket())]
  return openSocket(`${root}terminal${formatQuery(query)}`, protocols, handlers, signal)
}
