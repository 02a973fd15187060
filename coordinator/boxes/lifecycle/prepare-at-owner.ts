// Prepares a box where its agent is connected: what a box gets before it is running is sent by the coordinator with the tunnel.
import { z } from 'zod'
import { ApiError } from '../../../shared/errors.ts'
import type { AgentConnections } from '../../agents/tunnel/agent-connections.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { ModuleRegistry } from '../../http/module.ts'
import type { Peers } from '../../replicas/peers.ts'

type PrepareBox = ModuleRegistry['prepareBox']

const OPERATION = 'box.prepare'
/** The files, the variables and the credentials of a box have time limits of their own, together less than this. */
const TIMEOUT_MS = 150_000

const inputSchema = z.object({ boxId: z.string() })

/**
 * @param peers null: no other coordinator uses the database
 * @param prepareBox prepares a box whose agent is connected to this coordinator
 */
export function prepareAtOwner(options: {
  peers: Pick<Peers, 'handle' | 'call'> | null
  tunnels: Pick<Tunnels, 'local'>
  agentConnections: Pick<AgentConnections, 'owner'>
  prepareBox: PrepareBox
}): PrepareBox {
  const { peers, tunnels, agentConnections, prepareBox } = options
  if (peers === null) return prepareBox

  /** Without its tunnel, the modules would have nothing to do for the box. */
  async function prepareHere(boxId: string, signal: AbortSignal): Promise<void> {
    if (tunnels.local(boxId) === undefined) throw new ApiError('box_unreachable')
    await prepareBox(boxId, signal)
  }
  peers.handle(OPERATION, inputSchema, ({ boxId }, signal) => prepareHere(boxId, signal))

  return async (boxId, signal) => {
    const owner = agentConnections.owner(boxId)
    if (owner === undefined) return prepareHere(boxId, signal)
    await peers.call(
      owner.replicaId,
      OPERATION,
      { boxId },
      { schema: z.null(), timeoutMs: TIMEOUT_MS, signal },
    )
  }
}
