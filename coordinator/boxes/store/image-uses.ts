// Finds the images that boxes and snapshots of all workspaces use.
import type { Region } from '../../../shared/tiers.ts'
import type { Db } from '../../db/open.ts'

export type ImageUse = { kind: 'box' | 'snapshot'; region: Region; image: string; count: number }

/** One entry for each image, region and kind. Leaves out deleted boxes and snapshots. */
export async function listImageUses(db: Db): Promise<ImageUse[]> {
  const boxes = await db
    .selectFrom('boxes')
    .select(({ fn }) => ['region', 'image', fn.countAll().as('count')])
    .where('terminated_at', 'is', null)
    .where('image', 'is not', null)
    .groupBy(['region', 'image'])
    .execute()
  const snapshots = await db
    .selectFrom('snapshots')
    .select(({ fn }) => ['region', 'image', fn.countAll().as('count')])
    .where('deleted_at', 'is', null)
    .where('image', 'is not', null)
    .groupBy(['region', 'image'])
    .execute()
  const present = (kind: ImageUse['kind'], rows: typeof boxes) =>
    rows.flatMap(({ region, image, count }) =>
      image === null ? [] : [{ kind, region, image, count: Number(count) }],
    )
  return [...present('box', boxes), ...present('snapshot', snapshots)]
}
