// The providers of the regions. Several regions may share a provider.
import { DEFAULT_REGION, REGIONS, type Region } from '../../shared/tiers.ts'
import type { BoxRow } from '../db/schema.ts'
import { machineProvider } from './enrolled/provider.ts'
import { PermanentProviderError, type Provider } from './provider.ts'

export type Providers = {
  /** The regions that new boxes can use. */
  readonly regions: readonly Region[]
  /** The region of a box that is created without one. */
  readonly defaultRegion: Region
  /** Includes the providers of regions that new boxes cannot use any more. */
  readonly byRegion: ReadonlyMap<Region, Provider>
  /** Contains each provider once. */
  readonly all: readonly Provider[]
  /** See Provider. Absent: unknown, or the providers have different versions. */
  readonly agentVersion?: string
  /** Whether new boxes can use the region. */
  serves(region: Region): boolean
  /** Returns the provider of a box. Throws PermanentProviderError like inRegion(). */
  for(box: Pick<BoxRow, 'kind' | 'region'>): Provider
  /** Returns the provider of the managed boxes in a region. Throws PermanentProviderError for a region without a provider. */
  inRegion(region: Region): Provider
  /** The isolation between boxes, for the startup banner. */
  describe(): string
  close(): Promise<void>
}

/**
 * @param byRegion the provider of each region that has boxes or may get some
 * @param served the regions that new boxes can use; not empty. Default: those with a provider.
 */
export function createProviders(
  byRegion: ReadonlyMap<Region, Provider>,
  served: readonly Region[] = [...byRegion.keys()],
): Providers {
  const all = [...new Set(byRegion.values())]
  const [firstRegion = DEFAULT_REGION] = served
  const inRegion = (region: Region): Provider => {
    const provider = byRegion.get(region)
    if (provider === undefined)
      throw new PermanentProviderError(
        `No provider serves region ${region}. Add it to BOXWOOD_REGIONS and restart the coordinator.`,
      )
    return provider
  }
  const [agentVersion, ...otherVersions] = new Set(all.map((provider) => provider.agentVersion))
  return {
    regions: served,
    defaultRegion: served.includes(DEFAULT_REGION) ? DEFAULT_REGION : firstRegion,
    byRegion,
    all,
    ...(agentVersion !== undefined && otherVersions.length === 0 ? { agentVersion } : {}),
    serves: (region) => served.includes(region),
    for: ({ kind, region }) => (kind === 'machine' ? machineProvider : inRegion(region)),
    inRegion,
    describe: () => [...new Set(all.map((provider) => provider.describe()))].join('\n'),
    async close() {
      await Promise.all(all.map((provider) => provider.close()))
    },
  }
}

export const serveAllRegions = (provider: Provider): Providers =>
  createProviders(new Map(REGIONS.map((region) => [region, provider])))
