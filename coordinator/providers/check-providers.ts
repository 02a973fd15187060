// Checks that each region still has the provider of its boxes and snapshots.
import { DEFAULT_REGION, REGIONS, type Region } from '../../shared/tiers.ts'
import { StartError } from '../base/start-error.ts'
import { formatProvider, type RegionProvider } from './settings.ts'

/** What the boxes and snapshots of a region have as their provider. */
export type ProviderUse = { region: Region; provider: string; boxes: number; snapshots: number }

/**
 * Throws StartError for a region whose provider was replaced, or removed unless it was local: the boxes of a removed local
 * region continue to work.
 */
export function checkProviders(
  uses: readonly ProviderUse[],
  regions: ReadonlyMap<Region, RegionProvider>,
): void {
  const isReplaced = ({ region, provider }: ProviderUse) =>
    provider !== (regions.get(region)?.kind ?? 'local')
  const replaced = uses.filter(isReplaced)
  if (replaced.length === 0) return
  const problems = replaced.map((use) => describeProblem(use, regions.get(use.region)?.kind))
  throw new StartError(
    `${problems.join('\n')}\nStart with BOXWOOD_REGIONS=${formatRegions(uses, replaced, regions)}. To use another provider, first start with this one and delete them, or move the boxes to another region.`,
  )
}

/** The regions of the configuration, with the providers that they had before. */
function formatRegions(
  uses: readonly ProviderUse[],
  replaced: readonly ProviderUse[],
  regions: ReadonlyMap<Region, RegionProvider>,
): string {
  // Without a configuration all regions are local, of which those without boxes need no mention.
  const isUnconfigured = REGIONS.every((known) => regions.get(known)?.kind === 'local')
  const kept = [...regions].filter(
    ([region]) => !isUnconfigured || region === DEFAULT_REGION || uses.some((use) => use.region === region),
  )
  const entries = new Map<Region, string>(
    kept.map(([region, provider]) => [region, formatProvider(provider)]),
  )
  for (const { region, provider } of replaced) entries.set(region, provider)
  return [...entries].map(([region, provider]) => `${region}=${provider}`).join(',')
}

function describeProblem(
  { region, provider, boxes, snapshots }: ProviderUse,
  configured: string | undefined,
): string {
  const counts = [count(boxes, 'box', 'boxes'), count(snapshots, 'snapshot', 'snapshots')]
  const owned = counts.filter((text) => text !== null).join(' and ')
  const state =
    configured === undefined ? 'is not in BOXWOOD_REGIONS' : `has the provider ${configured} in this start`
  return `Region ${region} ${state}, but the provider ${provider} has ${owned} there.`
}

const count = (n: number, one: string, many: string): string | null =>
  n === 0 ? null : `${n} ${n === 1 ? one : many}`
