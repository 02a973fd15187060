// The requests that another coordinator has forwarded to this one, with the address of their client.
import type { IncomingMessage } from 'node:http'
import { PEER_HEADER, type PeerClaim } from '../replicas/peer-header.ts'

type ForwardedRequest = {
  /** null: the client is connected to a Unix socket. */
  clientAddress: string | null
  /** The id of the box that it is about; undefined: a connection that an agent dials back. */
  boxId: string | undefined
}

const forwarded = new WeakMap<IncomingMessage, ForwardedRequest>()

/** undefined: the client has sent the request to this coordinator. */
export const getForwarded = (request: IncomingMessage): ForwardedRequest | undefined => forwarded.get(request)

/**
 * Call it for each request before it is served: only the header of another coordinator has a meaning, and no program behind this
 * one gets it.
 * @param verify see Peers
 * @returns whether the request comes from another coordinator
 */
export function readForwarded(
  request: IncomingMessage,
  verify: (request: IncomingMessage) => PeerClaim | null,
): boolean {
  if (request.headers[PEER_HEADER] === undefined) return false
  const claim = verify(request)
  if (claim?.client !== undefined) forwarded.set(request, { clientAddress: claim.client, boxId: claim.box })
  if (claim === null || claim.client !== undefined) removePeerHeader(request)
  return claim !== null
}

function removePeerHeader({ headers, rawHeaders }: IncomingMessage): void {
  delete headers[PEER_HEADER]
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2)
    if (rawHeaders[index]?.toLowerCase() === PEER_HEADER) rawHeaders.splice(index, 2)
}
