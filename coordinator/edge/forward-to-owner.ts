// Forwards a request about a box to the coordinator that has the tunnel of the box: what is only in the memory of a coordinator
// about a box, such as its limits, is there.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import type { AgentConnections } from '../agents/tunnel/agent-connections.ts'
import type { Tunnels } from '../agents/tunnel/types.ts'
import type { BoxService } from '../boxes/service.ts'
import { getClientAddress } from '../http/client-address.ts'
import { createForwardToReplica, type ForwardOptions, MISDIRECTED } from '../http/forward-to-replica.ts'
import { getForwarded } from '../http/forwarded-requests.ts'
import type { ForwardToOwner } from '../http/register-routes.ts'
import type { Peers } from '../replicas/peers.ts'

export type OwnerForwardingOptions = {
  agentConnections: Pick<AgentConnections, 'owner' | 'readOwner'>
  peers: Pick<Peers, 'findAddress' | 'sign'>
}

/** An HTTP exchange about one box, whose body has not been read. */
type Exchange = { request: IncomingMessage; response: ServerResponse }

/**
 * Resolves to false when this coordinator serves the request: it has the tunnel, or there is none.
 * @throws ApiError when the coordinator with the tunnel does not respond
 */
export type ForwardExchange = (
  exchange: Exchange,
  boxId: string,
  options: ForwardOptions & {
    /** The error when the other coordinator does not respond. Default: box_unreachable. */
    errorCode?: ErrorCode
  },
) => Promise<boolean>

/** How often a request is forwarded when the first coordinator does not have the tunnel any more. */
const MAX_ATTEMPTS = 2
/** How long a request waits for the agent to leave a coordinator that does not listen or respond any more. Agents reconnect within seconds. */
const MOVE_MS = 10_000
const POLL_MS = 25

export function createForwardExchange(options: OwnerForwardingOptions): ForwardExchange {
  const { agentConnections, peers } = options

  /** Nothing is read from the database: the next tunnel is notified. */
  async function waitForMove(
    boxId: string,
    replicaId: string,
    { response }: Exchange,
    endsAt: number,
  ): Promise<void> {
    const isWaiting = () => !response.destroyed && performance.now() < endsAt
    while (agentConnections.owner(boxId)?.replicaId === replicaId && isWaiting()) await sleep(POLL_MS)
  }

  return async (exchange, boxId, { errorCode = 'box_unreachable', ...forwardOptions }) => {
    let owner = agentConnections.owner(boxId)
    if (owner === undefined) return false
    const { request, response } = exchange
    if (getForwarded(request) !== undefined) {
      // A request is forwarded once: the coordinator that has forwarded it reads the owner of the tunnel again.
      response.writeHead(MISDIRECTED.status, MISDIRECTED.headers).end()
      return true
    }
    const forward = createForwardToReplica(peers, exchange, { ...forwardOptions, boxId })
    let waitsUntil: number | undefined
    for (let attempt = 1; owner !== undefined && attempt <= MAX_ATTEMPTS; attempt += 1) {
      const { replicaId }: { replicaId: string } = owner
      const result = await forward(replicaId)
      if (result === 'forwarded') return true
      if (result === 'failed') break
      if (result === 'unconnected') {
        waitsUntil ??= performance.now() + MOVE_MS
        await waitForMove(boxId, replicaId, exchange, waitsUntil)
      }
      owner =
        result === 'unconnected' ? agentConnections.owner(boxId) : await agentConnections.readOwner(boxId)
      if (owner === undefined && !request.readableDidRead) return false
    }
    throw new ApiError(
      errorCode,
      'The coordinator that has the connection of the box does not respond. Try again.',
    )
  }
}

export type ForwardToOwnerOptions = {
  boxes: Pick<BoxService, 'resolve'>
  tunnels: Pick<Tunnels, 'local'>
  forwardExchange: ForwardExchange
}

export function createForwardToOwner(options: ForwardToOwnerOptions): ForwardToOwner {
  const { boxes, tunnels, forwardExchange } = options

  /** undefined: the actor has no such box. */
  async function findBoxId({
    actor,
    box,
    request,
  }: Parameters<ForwardToOwner>[0]): Promise<string | undefined> {
    // The other coordinator has read the box. This one checks the access of the actor when it serves the request.
    const { boxId } = getForwarded(request.raw) ?? {}
    if (boxId !== undefined) return boxId
    if (tunnels.local(box) !== undefined) return box
    const found = await boxes.resolve(actor, box).catch((error: unknown) => {
      // The route may serve it: the history of a deleted box can be read.
      if (error instanceof ApiError) return undefined
      throw error
    })
    return found?.id
  }

  return async (exchange) => {
    const boxId = await findBoxId(exchange)
    if (boxId === undefined || tunnels.local(boxId) !== undefined) return false
    const { request, reply, host } = exchange
    return forwardExchange({ request: request.raw, response: reply.raw }, boxId, {
      clientAddress: getClientAddress(request),
      // The routes of the control plane do not respond with box_unreachable.
      errorCode: host === 'control' ? 'control_plane_unavailable' : 'box_unreachable',
    })
  }
}
