// Checks that each region still has the provider of its boxes and snapshots.
import type { Region } from '../../shared/tiers.ts'
import { StartError } from '../base/start-error.ts'
import type { RegionProvider } from './settings.ts'

/** What the boxes and snapshots of a region have as their provider. */
export type ProviderUse = { region: Region; provider: string; boxes: number; snapshots: number }

/**
 * Throws StartError for a region whose provider was replaced, or removed unless it was local: the boxes of a removed local
 * region continue to work.
 */
export function checkProviders(
  uses: readonly ProviderUse[],
  regions: ReadonlyMap<Region, Pick<RegionProvider, 'kind'>>,
): void {
  const problems = uses.flatMap((use) => {
    const configured = regions.get(use.region)?.kind
    if (configured === use.provider || (configured === undefined && use.provider === 'local')) return []
    return [describeProblem(use, configured)]
  })
  if (problems.length > 0) throw new StartError(problems.join('\n'))
}

function describeProblem(
  { region, provider, boxes, snapshots }: ProviderUse,
  configured: string | undefined,
): string {
  const counts = [count(boxes, 'box', 'boxes'), count(snapshots, 'snapshot', 'snapshots')]
  const owned = counts.filter((text) => text !== null).join(' and ')
  const state =
    configured === undefined
      ? 'is not in BOXWOOD_REGIONS'
      : `has the provider ${configured} in BOXWOOD_REGIONS`
  return `Region ${region} ${state}, but the provider ${provider} has ${owned} there. Set ${region}=${provider}; to use another provider, first start with it and delete them, or move the boxes to another region.`
}

const count = (n: number, one: string, many: string): string | null =>
  n === 0 ? null : `${n} ${n === 1 ? one : many}`
