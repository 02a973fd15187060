// Upgrades of agents to the current build.

import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { AgentBundles } from '../bundles/agent-bundles.ts'
import type { AgentConnections } from '../tunnel/agent-connections.ts'
import type { Tunnels } from '../tunnel/types.ts'
import { AgentUpgrades } from './agent-upgrades.ts'
import { createTargetFinder } from './find-target.ts'
import { agentRoutes } from './routes.ts'
import { createAgentLoader, createAgentService, type UpgradedBoxes } from './service.ts'

export type UpgradesModuleContext = ModuleBase & {
  agentBundles: AgentBundles
  agentConnections: Pick<AgentConnections, 'restartAgent'>
  tunnels: Tunnels
  upgradedBoxes: UpgradedBoxes
  /** `agentVersion` is the version with which the machines of managed boxes start; undefined when it is unknown. */
  providers: { readonly agentVersion?: string | undefined }
  limiter: {
    /** Whether a restart of the agent would interrupt a request to the box. */
    hasInterruptibleRequests(boxId: string): boolean
  }
}

export function upgradesModule(context: UpgradesModuleContext): Module {
  const { db, clock, log, agentBundles, agentConnections, tunnels, upgradedBoxes: boxes } = context
  const { providers, limiter } = context
  const upgrades = new AgentUpgrades({
    tunnels,
    findTarget: createTargetFinder({ bundles: agentBundles, managedVersion: providers.agentVersion }),
    loadBox: createAgentLoader(db, boxes),
    restartAgent: agentConnections.restartAgent,
    isIdle: (boxId) => !limiter.hasInterruptibleRequests(boxId),
    log,
  })
  const agents = createAgentService({ db, clock, boxes, tunnels, upgrades })
  return {
    routes: withTag('Agents', agentRoutes({ agents })),
    workspaceTables: [{ table: 'agent_rollouts', key: null }],
    beginStop: () => upgrades.close(),
    close: { name: 'stop upgrading agents', run: () => upgrades.close() },
  }
}
