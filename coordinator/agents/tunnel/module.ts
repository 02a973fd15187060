// The connections of agents: tunnels, reports and dial-back connections.

import type { Connections } from '../../http/connections.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import type { HttpSettings } from '../../http/settings.ts'
import type { Peers } from '../../replicas/peers.ts'
import type { Replica } from '../../replicas/replica.ts'
import {
  type AgentConnections,
  type AgentConnectionsOptions,
  createAgentConnections,
} from './agent-connections.ts'
import { createTunnelMetrics } from './metrics.ts'
import { deleteTunnel } from './owners/owners.ts'
import type { Ingest } from './reports.ts'
import type { TunnelRequestObserver, Tunnels } from './types.ts'

export type TunnelModuleContext = ModuleBase & {
  config: Pick<HttpSettings, 'trustedProxies'>
  /** See AgentConnectionsOptions. */
  authenticateAgent: AgentConnectionsOptions['authenticate']
  machineAgents: AgentConnectionsOptions['machines']
  /** Has the key with which the coordinator proves its identity to machines. */
  agentBundles: { sign(text: string): Promise<string> }
  /** Connections of accepted agents are not closed for those without a credential. */
  connections: Pick<Connections, 'setAuthenticated'>
  ingest: Ingest
  replica: Replica
  /** null: this is the only coordinator of the database. */
  peers: Peers | null
  observers: {
    tunnelRequests?: TunnelRequestObserver
    /** Returns an Ingest that measures this one. */
    observeIngest?(ingest: Ingest): Ingest
    /** Called with the error code when an agent is rejected. */
    onAgentReject?(code: string): void
  }
  overrides: {
    /** Tests with in-memory machines pass the tunnels of these machines. */
    tunnels?: Tunnels
    agentConnections?: Partial<AgentConnectionsOptions>
  }
}

/** The time is short, because requests in flight have already had that of the HTTP drain. */
const DRAIN_MS = 500

export function tunnelModule(context: TunnelModuleContext) {
  const { config, db, log, clock, observers, overrides, ingest, replica, peers } = context
  const agentConnections: AgentConnections = createAgentConnections({
    ...overrides.agentConnections,
    log,
    clock,
    authenticate: context.authenticateAgent,
    machines: context.machineAgents,
    sign: context.agentBundles.sign,
    ingest: observers.observeIngest?.(ingest) ?? ingest,
    observeRequest: observers.tunnelRequests,
    onReject: observers.onAgentReject,
    onAuthenticated: (socket, { boxId, workspaceId }, use) =>
      context.connections.setAuthenticated(
        socket,
        { credentialId: boxId, userId: null, workspaceId },
        use === 'tunnel' ? 'tunnel' : 'box',
      ),
    trustedProxies: config.trustedProxies,
    drainMs: DRAIN_MS,
    sharing: peers === null ? undefined : { db, peers, replica },
  })
  const tunnels: Tunnels = overrides.tunnels ?? agentConnections
  return {
    services: { agentConnections, tunnels },
    metrics: createTunnelMetrics(tunnels),
    deleteOfBox: deleteTunnel,
    start: agentConnections.start,
    drain: agentConnections.drain,
    close: { name: 'close the tunnels', run: agentConnections.close },
  } satisfies Module
}
