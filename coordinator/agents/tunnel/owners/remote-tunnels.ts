// Requests to agents whose tunnels are at another coordinator: that one sends them, and serves those of the others here.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { z } from 'zod'
import { ApiError } from '../../../../shared/errors.ts'
import { type Peers, PeerUnreachableError } from '../../../replicas/peers.ts'
import { createTooLargeError } from '../agent-errors.ts'
import type { Tunnel, TunnelCall, TunnelCallResponse } from '../types.ts'
import type { RemoteTunnel, TunnelOwners } from './owners.ts'

/** What the coordinator of a tunnel does for the others. */
export type LocalTunnels = {
  /** Throws box_unreachable when the tunnel of the box is not here. */
  get(boxId: string): Pick<Tunnel, 'call'>
  /** Whether the agent shows activity. One that does not is disconnected. */
  probe(boxId: string): Promise<boolean>
  flushReports(boxId: string, ms: number): Promise<void>
  restartAgent(boxId: string, buildId?: string): Promise<boolean>
  disconnect(boxId: string, reason: string, options: { reconnect?: 'immediately' }): void
}

export type RemoteTunnels = {
  /** The tunnel of the box at another coordinator; undefined: there is none. */
  find(boxId: string): Tunnel | undefined
  /**
   * Whether an agent that is not `instanceId` is connected to another coordinator and shows activity there.
   * @throws ApiError control_plane_unavailable when that coordinator does not answer: it is unknown then
   */
  hasRival(boxId: string, instanceId: string): Promise<boolean>
  /** See Tunnels. undefined: the box has no tunnel elsewhere. */
  flushReports(boxId: string, ms: number): Promise<void> | undefined
  restartAgent(boxId: string, buildId?: string): Promise<boolean> | undefined
  disconnect(boxId: string, reason: string, options: { reconnect?: 'immediately' }): void
  close(): void
}

export type RemoteTunnelsOptions = {
  peers: Peers
  owners: TunnelOwners
  local: LocalTunnels
  log: Pick<Logger, 'error'>
}

const boxSchema = z.object({ boxId: z.string() })
const callSchema = boxSchema.extend({
  method: z.enum(['GET', 'POST', 'PUT', 'DELETE']),
  path: z.string(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.string().optional(),
  timeoutMs: z.number(),
  maxBytes: z.number().optional(),
})
/** `body` is in base64. */
const responseSchema = z.object({ status: z.number(), body: z.string() })
const flushSchema = boxSchema.extend({ ms: z.number() })
const restartSchema = boxSchema.extend({ buildId: z.string().optional() })
const disconnectSchema = boxSchema.extend({
  reason: z.string(),
  reconnect: z.literal('immediately').optional(),
})
/** An operation without an output. */
const nothingSchema = z.null()

/** How much longer than the operation itself a call may take. */
const MARGIN_MS = 2_000
const PROBE_MS = 6_000
const RESTART_MS = 15_000
const DISCONNECT_MS = 5_000
const RETRY_MS = 1_000
/** The limits of TunnelCall.maxBytes() depend on whether the status is one of an error. */
const STATUSES = [200, 400, 500]

export function createRemoteTunnels({ peers, owners, local, log }: RemoteTunnelsOptions): RemoteTunnels {
  const closed = new AbortController()
  serveOthers(peers, local)

  /** A tunnel is one object as long as it exists. */
  const tunnels = new WeakMap<RemoteTunnel, Tunnel>()

  function getTunnel(remote: RemoteTunnel): Tunnel {
    const { replicaId, ...identity } = remote
    const tunnel = tunnels.get(remote) ?? {
      ...identity,
      call: (call) => callAgent(replicaId, identity.boxId, call),
    }
    tunnels.set(remote, tunnel)
    return tunnel
  }

  async function callAgent(replicaId: string, boxId: string, call: TunnelCall): Promise<TunnelCallResponse> {
    const { method, path, headers, body, timeoutMs, maxBytes, signal } = call
    const limit = maxBytes && Math.max(...STATUSES.map(maxBytes))
    const input = { boxId, method, path, headers, body, timeoutMs, maxBytes: limit }
    const options = { schema: responseSchema, timeoutMs: timeoutMs + MARGIN_MS, signal }
    const response = await peers.call(replicaId, 'tunnel.call', input, options).catch(toUnreachable)
    const bytes = Buffer.from(response.body, 'base64')
    const maxOfStatus = maxBytes?.(response.status)
    if (maxOfStatus !== undefined && bytes.length > maxOfStatus) throw createTooLargeError(maxOfStatus)
    return { status: response.status, body: bytes }
  }

  async function disconnect(replicaId: string, input: z.infer<typeof disconnectSchema>): Promise<void> {
    const { signal } = closed
    while (!signal.aborted) {
      try {
        const options = { schema: nothingSchema, timeoutMs: DISCONNECT_MS, signal }
        return void (await peers.call(replicaId, 'tunnel.disconnect', input, options))
      } catch (err) {
        // A coordinator that has stopped has closed its tunnels.
        if (signal.aborted || (await peers.findAddress(replicaId).catch(() => undefined)) === null) return
        log.error({ err, boxId: input.boxId }, 'failed to close a tunnel at another coordinator; will retry')
        await sleep(RETRY_MS, undefined, { ref: false })
      }
    }
  }

  return {
    find(boxId) {
      const tunnel = owners.find(boxId)
      return tunnel && getTunnel(tunnel)
    },
    async hasRival(boxId, instanceId) {
      const tunnel = await owners.findAgain(boxId)
      if (tunnel === undefined || tunnel.instanceId === instanceId) return false
      const options = { schema: z.boolean(), timeoutMs: PROBE_MS }
      try {
        return await peers.call(tunnel.replicaId, 'tunnel.probe', { boxId }, options)
      } catch (cause) {
        throw new ApiError(
          'control_plane_unavailable',
          'Another agent with this token may be connected: the coordinator that has its connection does not answer. Try again.',
          { cause },
        )
      }
    },
    flushReports(boxId, ms) {
      const tunnel = owners.find(boxId)
      if (tunnel === undefined) return undefined
      const options = { schema: nothingSchema, timeoutMs: ms + MARGIN_MS }
      return peers
        .call(tunnel.replicaId, 'tunnel.flush-reports', { boxId, ms }, options)
        .then(() => undefined, toUnreachable)
    },
    restartAgent(boxId, buildId) {
      const tunnel = owners.find(boxId)
      if (tunnel === undefined) return undefined
      const options = { schema: z.boolean(), timeoutMs: RESTART_MS }
      return peers.call(tunnel.replicaId, 'tunnel.restart', { boxId, buildId }, options).catch(toUnreachable)
    },
    disconnect(boxId, reason, options) {
      const tunnel = owners.find(boxId)
      if (tunnel === undefined) return
      owners.forget(boxId)
      void disconnect(tunnel.replicaId, { boxId, reason, ...options })
    },
    close: () => closed.abort(),
  }
}

function serveOthers(peers: Peers, local: LocalTunnels): void {
  peers.handle('tunnel.call', callSchema, async ({ boxId, maxBytes, ...call }, signal) => {
    const limit = maxBytes === undefined ? {} : { maxBytes: () => maxBytes }
    const { status, body } = await local.get(boxId).call({ ...call, ...limit, signal })
    return { status, body: body.toString('base64') }
  })
  peers.handle('tunnel.probe', boxSchema, ({ boxId }) => local.probe(boxId))
  peers.handle('tunnel.flush-reports', flushSchema, ({ boxId, ms }) => local.flushReports(boxId, ms))
  peers.handle('tunnel.restart', restartSchema, ({ boxId, buildId }) => local.restartAgent(boxId, buildId))
  peers.handle('tunnel.disconnect', disconnectSchema, async ({ boxId, reason, reconnect }) =>
    local.disconnect(boxId, reason, reconnect === undefined ? {} : { reconnect }),
  )
}

/** It is unknown whether the agent has got the request, as when a tunnel closes before the response. */
function toUnreachable(error: unknown): never {
  if (!(error instanceof PeerUnreachableError)) throw error
  throw new ApiError('box_unreachable', undefined, { cause: error })
}
