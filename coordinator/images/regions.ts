// What the boxes of each region can do.
import type { RegionInfo } from '../../shared/api/images.ts'
import type { Region } from '../../shared/tiers.ts'
import type { Provider } from '../providers/provider.ts'
import type { Providers } from '../providers/regions.ts'

type Settings = {
  /** Whether the operator lets a suspend freeze processes. */
  freezesBoxes: boolean
}

/** The regions that new boxes can use, in the order of the configuration. */
export const listRegions = (
  { regions, defaultRegion, inRegion }: Pick<Providers, 'regions' | 'defaultRegion' | 'inRegion'>,
  settings: Settings,
): RegionInfo[] =>
  regions.map((region) => presentRegion(region, inRegion(region), { ...settings, defaultRegion }))

const presentRegion = (
  region: Region,
  provider: Provider,
  { freezesBoxes, defaultRegion }: Settings & { defaultRegion: Region },
): RegionInfo => ({
  region,
  isDefault: region === defaultRegion,
  provider: provider.name,
  images: provider.images !== undefined,
  root: provider.hasRoot ?? false,
  freeze: freezesBoxes ? (provider.canFreeze ?? null) : false,
  resize: provider.resize === undefined ? 'restart' : 'live',
  snapshots: true,
  defaultImage: provider.images?.defaultImage ?? null,
  // The further lines are advice for the operator.
  description: provider.describe().split('\n', 1)[0] ?? '',
})
