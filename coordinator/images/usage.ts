// Which of the downloaded images are used: by a box, a snapshot, an environment, or as the default of a region.

import { getFullName } from '../boxes/choose-machine.ts'
import { type ImageUse, listImageUses } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import { listEnvironmentImages } from '../environments/list-images.ts'
import type { Provider } from '../providers/provider.ts'
import type { Providers } from '../providers/regions.ts'
import type { DownloadKey } from './store.ts'

type Regions = Pick<Providers, 'byRegion'>

/** Regions with the same provider may share an engine. */
export const isUseOf =
  (image: string, provider: Provider, { byRegion }: Regions) =>
  (use: Pick<ImageUse, 'region' | 'image'>): boolean => {
    const user = byRegion.get(use.region)
    return user?.name === provider.name && getFullName(use.image, user) === getFullName(image, provider)
  }

/** Returns a function that says whether an image is used. */
export async function readUsage(db: Db, regions: Regions): Promise<(download: DownloadKey) => boolean> {
  const uses = await listImageUses(db)
  const ofEnvironments = await listEnvironmentImages(db)
  return ({ region, image }) => {
    const provider = regions.byRegion.get(region)
    // The engine of a region that is not served any more is not changed.
    if (provider?.images === undefined) return true
    const names = [...ofEnvironments, provider.images.defaultImage]
    if (names.some((name) => getFullName(name, provider) === image)) return true
    return uses.some(isUseOf(image, provider, regions))
  }
}
