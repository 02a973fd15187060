// Upgrades of agents to the current build.

import { subscribe } from '../../db/notifications.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Replica } from '../../replicas/replica.ts'
import type { AgentBundles } from '../bundles/agent-bundles.ts'
import type { AgentConnections } from '../tunnel/agent-connections.ts'
import type { Tunnels } from '../tunnel/types.ts'
import { AgentUpgrades } from './agent-upgrades.ts'
import { getBuild } from './decide.ts'
import { createTargetFinder } from './find-target.ts'
import { createFleetTargets } from './fleet-targets.ts'
import { agentRoutes } from './routes.ts'
import { AGENT_ROLLOUTS, createAgentLoader, createAgentService, type UpgradedBoxes } from './service.ts'

export type UpgradesModuleContext = ModuleBase & {
  agentBundles: AgentBundles
  agentConnections: Pick<AgentConnections, 'restartAgent' | 'listLocal'>
  tunnels: Tunnels
  replica: Replica
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
  const { providers, limiter, replica } = context
  const { agentVersion: managedVersion } = providers
  const fleet =
    replica.fleet &&
    createFleetTargets({
      fleet: replica.fleet,
      replica,
      findHost: async (boxId) => (await boxes.find(db, boxId))?.host ?? null,
      onChange: () =>
        upgrades
          .applyTargets(agentConnections.listLocal())
          .catch((err: unknown) => log.warn({ err }, 'failed to apply the builds of other coordinators')),
    })
  const upgrades = new AgentUpgrades({
    tunnels,
    findTarget: createTargetFinder({ bundles: agentBundles, managedVersion, fleet }),
    refreshTargets: fleet?.refresh,
    loadBox: createAgentLoader(db, boxes),
    restartAgent: agentConnections.restartAgent,
    isIdle: (boxId) => !limiter.hasInterruptibleRequests(boxId),
    log,
  })
  const unsubscribe = subscribe(db, AGENT_ROLLOUTS, ({ workspaceId }) => upgrades.applyRollout(workspaceId), {
    onGap: () => upgrades.readRollouts(),
  })
  const agents = createAgentService({ db, clock, boxes, tunnels, upgrades })
  const close = () => {
    unsubscribe()
    fleet?.close()
    upgrades.close()
  }
  return {
    routes: withTag('Agents', agentRoutes({ agents })),
    workspaceTables: [{ table: 'agent_rollouts', key: null }],
    async start() {
      if (managedVersion !== undefined) await fleet?.offerManaged(getBuild(managedVersion))
    },
    beginStop: close,
    close: { name: 'stop upgrading agents', run: close },
  }
}
