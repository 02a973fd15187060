// Finds the build that an agent should run.
import { AGENT_PLATFORMS } from '../../../shared/agent-bundle.ts'
import type { AgentBundles } from '../bundles/agent-bundles.ts'
import type { AgentUpgradesOptions } from './agent-upgrades.ts'
import { getBuild } from './decide.ts'
import { installBuild } from './install-build.ts'

export type TargetFinderOptions = {
  bundles: Pick<AgentBundles, 'get'>
  /** The version with which the machines of managed boxes start their agents. undefined: unknown. */
  managedVersion: string | undefined
}

export function createTargetFinder({
  bundles,
  managedVersion,
}: TargetFinderOptions): AgentUpgradesOptions['findTarget'] {
  return async ({ platform: reported }) => {
    if (reported === null)
      return managedVersion === undefined ? null : { buildId: getBuild(managedVersion), install: null }
    const platform = AGENT_PLATFORMS.find((name) => name === reported)
    const bundle = platform === undefined ? null : await bundles.get(platform)
    if (bundle === null) return null
    return { buildId: bundle.buildId, install: (tunnel) => installBuild(tunnel, bundle) }
  }
}
