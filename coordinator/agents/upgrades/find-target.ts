// Finds the build that an agent should run.
import { AGENT_PLATFORMS } from '../../../shared/agent-bundle.ts'
import type { AgentBundle, AgentBundles } from '../bundles/agent-bundles.ts'
import type { AgentUpgradesOptions } from './agent-upgrades.ts'
import { getBuild } from './decide.ts'
import type { FleetTargets } from './fleet-targets.ts'
import { installBuild } from './install-build.ts'

export type TargetFinderOptions = {
  bundles: Pick<AgentBundles, 'get'>
  /** The version with which the machines of managed boxes start their agents. undefined: unknown. */
  managedVersion: string | undefined
  /** null: this is the only coordinator of the database. */
  fleet: FleetTargets | null
}

export function createTargetFinder({
  bundles,
  managedVersion,
  fleet,
}: TargetFinderOptions): AgentUpgradesOptions['findTarget'] {
  async function getBundle(reported: string): Promise<AgentBundle | null> {
    const platform = AGENT_PLATFORMS.find((name) => name === reported)
    return platform === undefined ? null : await bundles.get(platform)
  }

  return async (tunnel, host) => {
    const { platform } = tunnel
    if (platform === null) {
      const own = managedVersion === undefined ? null : { buildId: getBuild(managedVersion), isOffered: true }
      const choice = fleet === null ? own : await fleet.chooseForManaged(tunnel, host)
      return choice && { ...choice, install: null }
    }
    const bundle = await getBundle(platform)
    const own = bundle && { buildId: bundle.buildId, isOffered: true }
    const choice = fleet === null ? own : await fleet.chooseForMachine(tunnel, platform, own?.buildId ?? null)
    return choice && { ...choice, install: bundle && ((connected) => installBuild(connected, bundle)) }
  }
}
